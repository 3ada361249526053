// What every Once must do, and what one must do besides if result and work are one transaction. A
// store of idempotency keys plugs in with an OnceUnderTest and one line:
//
//   INSTANTIATE_TEST_SUITE_P(Redis, OnceConformance, ::testing::Values(make));
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "leasehold/once.h"
#include "leasehold/outbox.h"
#include "leasehold/token.h"

namespace leasehold::testing {

// What the work under a key can do; only what its store offers is there.
struct WorkSite {
  std::function<void()> act;                           // has an effect, which is counted
  std::function<std::string(const std::string&)> sql;  // in its transaction; empty, or a failure
  std::function<Status(const Token&)> enter;           // the fence "ledger"
  std::function<Result<std::int64_t>(OutboxEntry)> send;
};
using SiteWork = std::function<Result<std::string>(const WorkSite&)>;

// Has its effect and gives the result.
SiteWork act(std::string result);

// One connection, for one thread at a time.
class OnceUser {
 public:
  virtual ~OnceUser() = default;
  virtual Result<OnceResult> run(std::string_view key, std::string_view parameters,
                                 const SiteWork& work, const OnceOptions& options = {}) = 0;
};

// Idempotency keys of one test.
class OnceUnderTest {
 public:
  virtual ~OnceUnderTest() = default;
  virtual std::unique_ptr<OnceUser> connect() = 0;
  // How many effects of works there are.
  virtual int effects() = 0;
  // How many keys are known.
  virtual int keys() = 0;
  // Returns when somebody waits for another's work; at once where that cannot be seen.
  virtual void await_waiter() {}
};
using MakeOnce = std::function<std::unique_ptr<OnceUnderTest>()>;

class OnceConformance : public ::testing::TestWithParam<MakeOnce> {
 protected:
  void SetUp() override;
  Result<OnceResult> run(std::string_view key, std::string_view parameters, const SiteWork& work,
                         const OnceOptions& options = {}) {
    return user_->run(key, parameters, work, options);
  }
  // The work, and a repeat on another connection that waits for it: what each was told.
  std::pair<Result<OnceResult>, Result<OnceResult>> run_beside_a_repeat(const SiteWork& work);

  std::unique_ptr<OnceUnderTest> under_;
  std::unique_ptr<OnceUser> user_;
};

// ---- in the user's own database ------------------------------------------------------------

class TransactionalOnceUser : public OnceUser {
 public:
  // Outside any run. Empty, or the database's own words.
  virtual std::string sql(const std::string& text) = 0;
  virtual Result<std::int64_t> forget_older_than(std::chrono::seconds age) = 0;
};

class TransactionalOnceUnderTest : public OnceUnderTest {
 public:
  std::unique_ptr<OnceUser> connect() final { return connect_user(); }
  virtual std::unique_ptr<TransactionalOnceUser> connect_user() = 0;
  // The result under the key was stored two hours earlier than it was.
  virtual void make_old(const std::string& key) = 0;
};
using MakeTransactionalOnce = std::function<std::unique_ptr<TransactionalOnceUnderTest>()>;

class TransactionalOnceConformance : public ::testing::TestWithParam<MakeTransactionalOnce> {
 protected:
  void SetUp() override;

  std::unique_ptr<TransactionalOnceUnderTest> under_;
  std::unique_ptr<TransactionalOnceUser> user_;
};

}  // namespace leasehold::testing
