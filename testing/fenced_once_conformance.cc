#include "testing/fenced_once_conformance.h"

#include <gmock/gmock.h>

#include "testing/results.h"
#include "testing/tokens.h"

namespace leasehold::testing {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FencedOnceConformance);

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Pays, and tells two others.
Result<std::string> pay_and_tell(const WorkSite& site) {
  site.act();
  for (const char* topic : {"payment.received", "stock.reserved"}) {
    auto sent =
        site.send({.key = "order/1", .topic = topic, .payload = "30", .idempotency_key = {}});
    if (!sent) return fail(sent.error());
  }
  return "paid";
}

}  // namespace

TEST_P(FencedOnceConformance, NewHolderThatRepeatsGetsTheResultAndRaisesTheMark) {
  const auto first = charge(token_of(33, '1'));
  ASSERT_TRUE(good(first));
  EXPECT_FALSE(first->replayed);
  const auto second = charge(token_of(34, '2'));
  ASSERT_TRUE(good(second));
  EXPECT_TRUE(second->replayed);
  EXPECT_EQ(second->result, "by 33");
  EXPECT_EQ(under_->effects(), 1);
  EXPECT_EQ(under_->mark(), "34");
  EXPECT_EQ(under_->refused(), "0");
}

TEST_P(FencedOnceConformance, StaleHolderIsRefusedCountedAndToldNothing) {
  ASSERT_TRUE(good(charge(token_of(34, '2'))));
  for (const char* key : {"charge/1", "charge/2"}) {
    const auto stale = charge(token_of(33, '1'), key);
    ASSERT_TRUE(bad(stale, ErrorCode::fenced_out)) << key;
    ASSERT_TRUE(stale.error().refusal);
    EXPECT_EQ(stale.error().refusal->mark, 34);
  }
  EXPECT_EQ(under_->effects(), 1);
  EXPECT_EQ(under_->keys(), 1);
  EXPECT_EQ(under_->refused(), "2");
}

TEST_P(FencedOnceConformance, SameHolderMayWorkUnderManyKeys) {
  EXPECT_FALSE(charge(token_of(33, '1'), "charge/1").value().replayed);
  EXPECT_FALSE(charge(token_of(33, '1'), "charge/2").value().replayed);
  EXPECT_EQ(under_->effects(), 2);
}

TEST_P(FencedOnceConformance, FailureLeavesNeitherMarkNorKeyNorMessage) {
  const auto failed = under_->run(token_of(33, '1'), "charge/1", "",
                                  [](const WorkSite& site) -> Result<std::string> {
                                    (void)pay_and_tell(site);
                                    return fail(ErrorCode::lost, "no time");
                                  });
  EXPECT_TRUE(bad(failed, ErrorCode::lost));
  EXPECT_EQ(under_->effects(), 0);
  EXPECT_EQ(under_->keys(), 0);
  EXPECT_EQ(under_->mark(), "none");
  EXPECT_THAT(under_->messages(), IsEmpty());
}

TEST_P(FencedOnceConformance, OtherParametersAreInvalidAndChangeNothing) {
  ASSERT_TRUE(good(charge(token_of(33, '1'))));
  const auto other = under_->run(token_of(34, '2'), "charge/1", "amount=31", act("x"));
  ASSERT_TRUE(bad(other, ErrorCode::invalid));
  EXPECT_THAT(other.error().message, HasSubstr("other parameters"));
  EXPECT_EQ(under_->mark(), "33");
  EXPECT_EQ(under_->effects(), 1);
}

TEST_P(FencedOnceConformance, AnyBytesAreExact) {
  ASSERT_TRUE(good(under_->run(token_of(33, '1'), "k", any_bytes(), act(any_bytes()))));
  const auto again = under_->run(token_of(34, '2'), "k", any_bytes(), act(""));
  ASSERT_TRUE(good(again));
  EXPECT_EQ(again->result, any_bytes());
}

TEST_P(FencedOnceConformance, WrongInputIsInvalid) {
  EXPECT_TRUE(bad(charge(token_of(33, '1'), ""), ErrorCode::invalid));
  ASSERT_EQ(under_->sql("BEGIN"), "");
  EXPECT_TRUE(bad(charge(token_of(33, '1')), ErrorCode::invalid));
  ASSERT_EQ(under_->sql("ROLLBACK"), "");
  EXPECT_TRUE(bad(under_->open(""), ErrorCode::invalid));
  EXPECT_TRUE(good(under_->open("ledger")));
  under_->remove_once();
  EXPECT_TRUE(bad(under_->open("ledger"), ErrorCode::unavailable));
}

TEST_P(FencedOnceConformance, WritesToAGuardedTable) {
  ASSERT_TRUE(good(under_->guard()));
  EXPECT_FALSE(charge(token_of(33, '1')).value().replayed);
  EXPECT_TRUE(charge(token_of(34, '2')).value().replayed);
  EXPECT_EQ(under_->effects(), 1);
}

// ---- with messages -------------------------------------------------------------------------

TEST_P(FencedOnceConformance, MessagesAreSentWithTheWorkAndNotWithItsRepeat) {
  EXPECT_FALSE(under_->run(token_of(33, '1'), "charge/1", "", pay_and_tell).value().replayed);
  EXPECT_TRUE(under_->run(token_of(34, '2'), "charge/1", "", pay_and_tell).value().replayed);
  EXPECT_THAT(under_->messages(), ElementsAre("charge/1#1", "charge/1#2"));
}

TEST_P(FencedOnceConformance, StaleHolderSendsNothing) {
  ASSERT_TRUE(good(under_->run(token_of(34, '2'), "charge/1", "", pay_and_tell)));
  EXPECT_TRUE(
      bad(under_->run(token_of(33, '1'), "charge/2", "", pay_and_tell), ErrorCode::fenced_out));
  EXPECT_THAT(under_->messages(), SizeIs(2));
}

TEST_P(FencedOnceConformance, WrongMessageFailsTheWork) {
  const auto failed = under_->run(
      token_of(33, '1'), "charge/1", "", [](const WorkSite& site) -> Result<std::string> {
        auto sent = site.send({.key = "", .topic = "t", .payload = "", .idempotency_key = {}});
        if (!sent) return fail(sent.error());
        return "sent";
      });
  EXPECT_TRUE(bad(failed, ErrorCode::invalid));
  EXPECT_EQ(under_->keys(), 0);
}

TEST_P(FencedOnceConformance, LongestKeyLeavesTheMessageItsRandomOne) {
  ASSERT_TRUE(good(under_->run(token_of(33, '1'), std::string(512, 'k'), "", pay_and_tell)));
  EXPECT_THAT(under_->messages(), SizeIs(2));
}

}  // namespace leasehold::testing
