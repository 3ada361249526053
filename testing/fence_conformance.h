// What every fence must do, whatever it guards. A fence plugs in with a FenceUnderTest and one
// line:
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, FenceConformance, ::testing::Values(FenceCase{"wal", make}),
//                            name_of_fence_case);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/enter_options.h"
#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/registry.h"
#include "leasehold/token.h"
#include "leasehold/url.h"
#include "testing/fence_cases.h"

namespace leasehold::testing {

using EntryMode = Entry;

// To enter without ever giving up.
inline EnterOptions patiently(EntryMode mode, std::int64_t sequence = 0) {
  return {.entry = mode, .sequence = sequence, .timeout = Millis::max()};
}

// One connection to resources behind a fence. Each resource holds one text, empty at first. Used by
// one thread at a time. Names are passed as they come, for the fence to refuse. A call waits for
// other connections rather than answer `unavailable`.
class FenceConnection {
 public:
  using Change = std::function<std::string(std::string)>;

  virtual ~FenceConnection() = default;

  // Enter, then read or write, in one atomic step.
  virtual Result<std::string> enter_and_read(std::string_view resource, const Token& token,
                                             EntryMode mode) = 0;
  // `sequence` only if ways().numbers.
  virtual Status enter_and_write(std::string_view resource, const Token& token,
                                 std::string_view value, EntryMode mode,
                                 std::int64_t sequence = 0) = 0;

  // As a reader beside others, in one atomic step. `unsupported` where fences know no readers.
  virtual Result<std::string> read_beside(std::string_view resource, const Token& token);

  // Enters, reads, writes change(value). Here: enter_and_read, then enter_and_write. A resource
  // with transactions overrides it by one transaction.
  virtual Status update(std::string_view resource, const Token& token, const Change& change);

  // The value as it is, past the fence.
  virtual Result<std::string> peek(std::string_view resource) = 0;

  virtual Result<std::vector<FenceMark>> marks() = 0;
  virtual Status adopt(const ResourceName& resource, const Lineage& lineage,
                       TokenNumber at_least) = 0;
};

// One whose administration does the operator's part.
class AdministeredConnection : public FenceConnection {
 public:
  AdministeredConnection(const Adapter& adapter, const std::string& url)
      : admin_(adapter.offers.open<FenceAdmin>(Url::parse(url).value()).value()) {}
  Result<std::vector<FenceMark>> marks() override { return admin_->marks(); }
  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    return admin_->adopt(resource, lineage, at_least);
  }

 private:
  const std::unique_ptr<FenceAdmin> admin_;
};

// The resources of one test, with the fence installed and nothing entered yet.
class FenceUnderTest {
 public:
  virtual ~FenceUnderTest() = default;

  // A new, independent connection; never null. Called from any thread, and in forked children.
  virtual std::unique_ptr<FenceConnection> connect() = 0;

  // Ends whatever keeps the resources and starts it again: kills and starts a server, drops caches.
  // Called while no connection is open.
  virtual void restart() = 0;

  // true: update() is one transaction, so that the mark and the value never differ.
  virtual bool update_is_one_transaction() const = 0;

  virtual FenceWays ways() const { return {}; }
};

struct FenceCase {
  std::string name;
  std::function<std::unique_ptr<FenceUnderTest>()> make;
};
void PrintTo(const FenceCase& fence, std::ostream* out);
std::string name_of_fence_case(const ::testing::TestParamInfo<FenceCase>& info);

class FenceConformance : public ::testing::TestWithParam<FenceCase> {
 protected:
  void SetUp() override;

  std::unique_ptr<FenceUnderTest> fence_;
  std::unique_ptr<FenceConnection> here_;  // reset before forking
};

// Tokens for tests: `store` and `request` are one digit of an id each.
Lineage test_lineage(int store = 1, std::string_view lock = "invoice/1234");
Token test_token(std::int64_t number, int request, const Lineage& lineage = test_lineage());

}  // namespace leasehold::testing
