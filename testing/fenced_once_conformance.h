// What a fence with idempotency keys must do, with messages and without. A database plugs in with a
// FencedOnceUnderTest and one line:
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, FencedOnceConformance, ::testing::Values(make));
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "testing/once_conformance.h"

namespace leasehold::testing {

// A database of one test, with the fence, idempotency keys, an outbox and the table "data"; one
// connection of the user's.
class FencedOnceUnderTest {
 public:
  virtual ~FencedOnceUnderTest() = default;

  // At the resource "ledger".
  virtual Result<OnceResult> run(const Token& token, const std::string& key,
                                 const std::string& parameters, const SiteWork& work) = 0;
  // Empty, or the database's own words.
  virtual std::string sql(const std::string& text) = 0;
  virtual int effects() = 0;
  virtual int keys() = 0;
  virtual std::string mark() = 0;     // "none" if nobody has entered
  virtual std::string refused() = 0;  // likewise
  // Idempotency keys of the messages, in order.
  virtual std::vector<std::string> messages() = 0;
  // Guards the table of the effects by "ledger".
  virtual Status guard() = 0;
  // What opening says for this resource.
  virtual Status open(const std::string& resource) = 0;
  // Takes the idempotency keys out of the database.
  virtual void remove_once() = 0;
};
using MakeFencedOnce = std::function<std::unique_ptr<FencedOnceUnderTest>()>;

class FencedOnceConformance : public ::testing::TestWithParam<MakeFencedOnce> {
 protected:
  void SetUp() override { under_ = GetParam()(); }

  // The result tells by whom.
  Result<OnceResult> charge(const Token& token, const std::string& key = "charge/1") {
    return under_->run(token, key, "amount=30", act("by " + std::to_string(token.number.value())));
  }

  std::unique_ptr<FencedOnceUnderTest> under_;
};

}  // namespace leasehold::testing
