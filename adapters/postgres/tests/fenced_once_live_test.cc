#include "leasehold/postgres/fenced_once.h"

#include <gmock/gmock.h>

#include <string>
#include <thread>

#include "fence_database.h"
#include "leasehold/postgres/once.h"
#include "leasehold/postgres/outbox.h"

namespace leasehold::postgres {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class FencedOnceTest : public FenceDatabase {
 protected:
  FencedOnceTest() { EXPECT_TRUE(good(install_once(user_.get()))); }

  static FencedOnce fenced(const UserConnection& user) {
    return FencedOnce::open(user.get(), "ledger").value();
  }
  static Status insert(OpenTransaction& open) { return insert_row(open); }
  static auto pay(std::string result) {
    return [result](OpenTransaction& open) -> Result<std::string> {
      if (auto ok = insert(open); !ok) return fail(ok.error());
      return result;
    };
  }
  static Result<OnceResult> charge(const UserConnection& user, const Token& token,
                                   const char* key = "charge/1") {
    return fenced(user).run(token, key, "amount=30",
                            pay("by " + std::to_string(token.number.value())));
  }
  std::string keys() const { return user_.ask("SELECT count(*) FROM leasehold_once.result"); }
};

TEST_F(FencedOnceTest, NewHolderThatRepeatsGetsTheResultAndRaisesTheMark) {
  const auto first = charge(user_, token_of(33, '1'));
  ASSERT_TRUE(good(first));
  EXPECT_FALSE(first->replayed);
  const auto second = charge(user_, token_of(34, '2'));
  ASSERT_TRUE(good(second));
  EXPECT_TRUE(second->replayed);
  EXPECT_EQ(second->result, "by 33");
  EXPECT_EQ(rows(), "1");
  EXPECT_EQ(mark(), "34");
  EXPECT_EQ(refused(), "0");
}

TEST_F(FencedOnceTest, StaleHolderIsRefusedCountedAndToldNothing) {
  ASSERT_TRUE(good(charge(user_, token_of(34, '2'))));
  for (const char* key : {"charge/1", "charge/2"}) {
    const auto stale = charge(user_, token_of(33, '1'), key);
    ASSERT_TRUE(bad(stale, ErrorCode::fenced_out)) << key;
    ASSERT_TRUE(stale.error().refusal);
    EXPECT_EQ(stale.error().refusal->mark, 34);
  }
  EXPECT_EQ(rows(), "1");
  EXPECT_EQ(keys(), "1");
  EXPECT_EQ(refused(), "2");
}

TEST_F(FencedOnceTest, SameHolderMayWorkUnderManyKeys) {
  EXPECT_FALSE(charge(user_, token_of(33, '1'), "charge/1").value().replayed);
  EXPECT_FALSE(charge(user_, token_of(33, '1'), "charge/2").value().replayed);
  EXPECT_EQ(rows(), "2");
}

TEST_F(FencedOnceTest, FailureLeavesNeitherMarkNorKey) {
  const auto failed = fenced(user_).run(token_of(33, '1'), "charge/1", "",
                                        [](OpenTransaction& open) -> Result<std::string> {
                                          if (auto ok = insert(open); !ok) return fail(ok.error());
                                          return fail(ErrorCode::lost, "no time");
                                        });
  EXPECT_TRUE(bad(failed, ErrorCode::lost));
  EXPECT_EQ(rows(), "0");
  EXPECT_EQ(keys(), "0");
  EXPECT_EQ(mark(), "none");
}

TEST_F(FencedOnceTest, OtherParametersAreInvalidAndChangeNothing) {
  ASSERT_TRUE(good(charge(user_, token_of(33, '1'))));
  const auto other = fenced(user_).run(token_of(34, '2'), "charge/1", "amount=31", pay("x"));
  ASSERT_TRUE(bad(other, ErrorCode::invalid));
  EXPECT_THAT(other.error().message, HasSubstr("other parameters"));
  EXPECT_EQ(mark(), "33");
  EXPECT_EQ(rows(), "1");
}

TEST_F(FencedOnceTest, WrongInputIsInvalid) {
  EXPECT_TRUE(bad(charge(user_, token_of(33, '1'), ""), ErrorCode::invalid));
  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_TRUE(bad(charge(user_, token_of(33, '1')), ErrorCode::invalid));
  ASSERT_EQ(user_.exec("ROLLBACK"), "");
  EXPECT_TRUE(bad(FencedOnce::open(user_.get(), ""), ErrorCode::invalid));
  ASSERT_EQ(user_.exec("DROP SCHEMA leasehold_once CASCADE"), "");
  EXPECT_TRUE(bad(FencedOnce::open(user_.get(), "ledger"), ErrorCode::unavailable));
}

TEST_F(FencedOnceTest, WritesToAGuardedTable) {
  ASSERT_TRUE(good(guard_table(user_.get(), "data", ledger())));
  EXPECT_FALSE(charge(user_, token_of(33, '1')).value().replayed);
  EXPECT_TRUE(charge(user_, token_of(34, '2')).value().replayed);
  EXPECT_EQ(rows(), "1");
}

// The key is also used by somebody who is behind another fence, or none.
TEST_F(FencedOnceTest, KeyAtWorkElsewhereIsWaitedForAsTheOptionsSay) {
  const UserConnection other(url());
  const auto outer = Once::open(user_.get())->run("k", "", [&](OpenTransaction& open) {
    const auto late = fenced(other).run(token_of(33, '1'), "k", "", pay("r"), {.wait = 20ms});
    EXPECT_TRUE(bad(late, ErrorCode::timeout));
    EXPECT_EQ(PQtransactionStatus(other.get()), PQTRANS_IDLE);
    return pay("outer")(open);
  });
  ASSERT_TRUE(good(outer));
  EXPECT_EQ(mark(), "none");
  EXPECT_EQ(fenced(other).run(token_of(33, '1'), "k", "", pay("r")).value().result, "outer");
  EXPECT_EQ(mark(), "33");
}

TEST_F(FencedOnceTest, SnapshotOlderThanTheOthersCommitIsTakenAnew) {
  const UserConnection other(url());
  ASSERT_EQ(other.exec("SET default_transaction_isolation = 'repeatable read'"), "");
  std::future<Result<OnceResult>> repeat;
  const auto first = fenced(user_).run(
      token_of(33, '1'), "k", "", [&](OpenTransaction& open) -> Result<std::string> {
        repeat = std::async(std::launch::async, [&] {
          return fenced(other).run(token_of(34, '2'), "k", "", pay("second"), {.wait = 60s});
        });
        await_waiter_elsewhere();
        return pay("first")(open);
      });
  ASSERT_TRUE(good(first));
  EXPECT_EQ(repeat.get().value().result, "first");
  EXPECT_EQ(rows(), "1");
  EXPECT_EQ(mark(), "34");
}

// ---- with messages -------------------------------------------------------------------------

class FencedOutboxTest : public FencedOnceTest {
 protected:
  FencedOutboxTest() { EXPECT_TRUE(good(install_outbox(user_.get()))); }

  // Pays, and tells two others.
  static Result<std::string> pay_and_tell(FencedTransaction& tx) {
    if (auto ok = insert(tx); !ok) return fail(ok.error());
    for (const char* topic : {"payment.received", "stock.reserved"}) {
      auto sent =
          tx.send({.key = "order/1", .topic = topic, .payload = "30", .idempotency_key = {}});
      if (!sent) return fail(sent.error());
    }
    return "paid";
  }
  Result<OnceResult> pay_as(const Token& token, const std::string& key = "charge/1") const {
    return fenced(user_).run(token, key, "", pay_and_tell);
  }
  std::string messages() const {
    return user_.ask("SELECT count(*) FROM leasehold_outbox.message");
  }
};

TEST_F(FencedOutboxTest, MessagesAreSentWithTheWorkAndNotWithItsRepeat) {
  EXPECT_FALSE(pay_as(token_of(33, '1')).value().replayed);
  EXPECT_TRUE(pay_as(token_of(34, '2')).value().replayed);
  EXPECT_EQ(messages(), "2");
  EXPECT_EQ(user_.ask("SELECT min(idempotency_key) FROM leasehold_outbox.message"), "charge/1#1");
  EXPECT_EQ(user_.ask("SELECT max(idempotency_key) FROM leasehold_outbox.message"), "charge/1#2");
}

TEST_F(FencedOutboxTest, StaleHolderSendsNothing) {
  ASSERT_TRUE(good(pay_as(token_of(34, '2'))));
  EXPECT_TRUE(bad(pay_as(token_of(33, '1'), "charge/2"), ErrorCode::fenced_out));
  EXPECT_EQ(messages(), "2");
}

TEST_F(FencedOutboxTest, FailedWorkSendsNothing) {
  const auto failed = fenced(user_).run(token_of(33, '1'), "charge/1", "",
                                        [](FencedTransaction& tx) -> Result<std::string> {
                                          (void)pay_and_tell(tx);
                                          return fail(ErrorCode::lost, "no time");
                                        });
  EXPECT_TRUE(bad(failed, ErrorCode::lost));
  EXPECT_EQ(messages(), "0");
  EXPECT_EQ(rows(), "0");
  EXPECT_EQ(mark(), "none");
}

TEST_F(FencedOutboxTest, WrongMessageFailsTheWork) {
  const auto failed = fenced(user_).run(
      token_of(33, '1'), "charge/1", "", [](FencedTransaction& tx) -> Result<std::string> {
        auto sent = tx.send({.key = "", .topic = "t", .payload = "", .idempotency_key = {}});
        if (!sent) return fail(sent.error());
        return "sent";
      });
  EXPECT_TRUE(bad(failed, ErrorCode::invalid));
  EXPECT_EQ(keys(), "0");
}

TEST_F(FencedOutboxTest, LongestKeyLeavesTheMessageItsRandomOne) {
  ASSERT_TRUE(good(pay_as(token_of(33, '1'), std::string(512, 'k'))));
  EXPECT_EQ(messages(), "2");
}

}  // namespace
}  // namespace leasehold::postgres
