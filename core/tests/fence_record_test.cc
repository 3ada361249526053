// The rules of a mark that is kept as a text, and entering it by compare and swap.
#include "leasehold/detail/fence_record.h"

#include <gmock/gmock.h>

#include <deque>

#include "leasehold/detail/fence_pass.h"

namespace leasehold::detail {
namespace {

using ::testing::HasSubstr;

const ResourceName kLedger = ResourceName::parse("ledger").value();
const Lineage kLineage = Lineage::parse("00112233445566778899aabbccddeeff/job with spaces").value();

RequestId request(int number) {
  RequestId::Bytes bytes{};
  bytes[0] = static_cast<std::uint8_t>(number);
  return RequestId(bytes);
}

Token token(std::int64_t number, int holder) {
  return {TokenNumber::of(number).value(), kLineage, request(holder)};
}

FenceRecord entered(std::int64_t number, int holder, std::int64_t sequence = 0,
                    std::string write = "") {
  FenceRecord record;
  record.lineage = kLineage;
  record.entered = FenceRecord::Entered{TokenNumber::of(number).value(), request(holder), sequence,
                                        std::move(write)};
  return record;
}

// ---- the text ------------------------------------------------------------------------------

TEST(FenceRecord, IsReadAsItWasWritten) {
  FenceRecord adopted_one;
  adopted_one.lineage = kLineage;
  adopted_one.least = TokenNumber::of(7).value();
  for (const FenceRecord& record :
       {FenceRecord{}, adopted_one, entered(9223372036854775807, 1), entered(3, 2, 4, "abc")}) {
    EXPECT_EQ(FenceRecord::parse(record.str()), record) << record.str();
  }
}

TEST(FenceRecord, AnythingElseIsNoRecord) {
  const std::string whole = entered(33, 1, 2, "w").str();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto torn = FenceRecord::parse(whole.substr(0, size));
    EXPECT_TRUE(!torn || torn->str() == whole.substr(0, size)) << size;
  }
  for (const std::string& text :
       {std::string(), std::string("leasehold-fence 2\n"), std::string("leasehold-fence 1"),
        std::string("token 1\n"), std::string("leasehold-fence 1\ntoken 1\n"),
        "leasehold-fence 1\nlineage " + kLineage.str() + "\ntoken -1\nrequest " + request(1).hex() +
            "\n",
        "leasehold-fence 1\nlineage " + kLineage.str() + "\ntoken 9223372036854775808\nrequest " +
            request(1).hex() + "\n",
        "leasehold-fence 1\nlineage " + kLineage.str() + "\nlineage " + kLineage.str() + "\n",
        whole + "unknown field\n", whole + "x"}) {
    EXPECT_FALSE(FenceRecord::parse(text)) << text;
  }
}

TEST(FenceRecord, FingerprintsTellPartsApart) {
  EXPECT_EQ(fingerprint({"a", "b"}), fingerprint({"a", "b"}));
  EXPECT_NE(fingerprint({"ab"}), fingerprint({"a", "b"}));
  EXPECT_NE(fingerprint({"a", ""}), fingerprint({"a"}));
  EXPECT_NE(fingerprint({"a", "bc"}), fingerprint({"ab", "c"}));
  EXPECT_EQ(fingerprint({}).size(), 32u);
}

// ---- the rules that the suite of all fences does not reach -----------------------------------

std::string sentence(const FenceVerdict& verdict) {
  const Error* error = std::get_if<Error>(&verdict);
  return error == nullptr ? "" : to_string(*error);
}

TEST(FenceRules, ASequenceNumberIsUsedOnce) {
  const FenceRecord record = entered(33, 1, 5, "five");
  const Token mine = token(33, 1);
  EXPECT_TRUE(std::holds_alternative<FenceRepeated>(
      judge(kLedger, record, {.token = mine, .sequence = 5, .write = "five"})));
  EXPECT_THAT(sentence(judge(kLedger, record, {.token = mine, .sequence = 5, .write = "other"})),
              HasSubstr("invalid: sequence number 5"));
  EXPECT_THAT(sentence(judge(kLedger, record, {.token = mine, .sequence = 4, .write = "four"})),
              HasSubstr("fenced_out"));
  const auto next = judge(kLedger, record, {.token = mine, .sequence = 6, .write = "six"});
  ASSERT_TRUE(std::holds_alternative<FenceAdmitted>(next));
  EXPECT_EQ(std::get<FenceAdmitted>(next).record, entered(33, 1, 6, "six"));
}

TEST(FenceRules, TheSameContentUnderAnotherNumberIsAnotherWrite) {
  const FenceRecord record = entered(33, 1, 5, "same");
  const Token mine = token(33, 1);
  const auto next = judge(kLedger, record, {.token = mine, .sequence = 6, .write = "same"});
  ASSERT_TRUE(std::holds_alternative<FenceAdmitted>(next));
  EXPECT_EQ(std::get<FenceAdmitted>(next).record, entered(33, 1, 6, "same"));
  EXPECT_THAT(sentence(judge(kLedger, record, {.token = mine, .sequence = 4, .write = "same"})),
              HasSubstr("fenced_out"));
  EXPECT_TRUE(std::holds_alternative<FenceRepeated>(
      judge(kLedger, record, {.token = mine, .write = "same"})));
}

TEST(FenceRules, TheNextHolderCountsForItself) {
  const auto next = judge(kLedger, entered(33, 1, 5, "five"), {.token = token(34, 2)});
  ASSERT_TRUE(std::holds_alternative<FenceAdmitted>(next));
  EXPECT_EQ(std::get<FenceAdmitted>(next).record, entered(34, 2));
}

TEST(FenceRules, AWriteOfAnotherHolderIsNoRepetition) {
  EXPECT_THAT(sentence(judge(kLedger, entered(34, 2, 5, "five"),
                             {.token = token(33, 1), .sequence = 5, .write = "five"})),
              HasSubstr("fenced_out"));
}

TEST(FenceRules, NegativeSequenceNumbersAreInvalid) {
  EXPECT_TRUE(check_sequence(0));
  EXPECT_EQ(check_sequence(-1).error().code, ErrorCode::invalid);
}

// ---- compare and swap ----------------------------------------------------------------------

// A mark in memory whose transactions go as the test wants, one after the other.
struct Mark {
  enum class Fate { done, conflict, lost_done, lost_undone, refused };
  FenceRecord record;
  std::int64_t version = 0;
  std::deque<Fate> fates = {};
  std::function<void()> after_a_loss = [] {};
  int counted = 0;

  FencePass pass() {
    return {.read = [this]() -> Result<SeenMark> {
              return SeenMark{record, version};
            },
            .commit = [this](const SeenMark& seen,
                             const FenceRecord& next) { return commit(seen, next); },
            .count_refusal = [this]() -> Status {
              ++counted;
              return {};
            }};
  }

 private:
  Result<Commit> commit(const SeenMark& seen, const FenceRecord& next) {
    const Fate fate = fates.empty() ? Fate::done : fates.front();
    if (!fates.empty()) fates.pop_front();
    if (fate == Fate::refused) return fail(ErrorCode::unavailable, "refused");
    if (fate == Fate::conflict || seen.version != version) return Commit::conflict;
    if (fate != Fate::lost_undone) {
      record = next;
      ++version;
    }
    if (fate == Fate::done) return Commit::done;
    after_a_loss();
    return fail(ErrorCode::outcome_unknown, "no reply");
  }
};

class FencePassTest : public ::testing::Test {
 protected:
  Result<Passed> write(const Token& holder) {
    return pass_fence(kLedger, {.token = holder, .write = "mine"}, mark_.pass(), context_);
  }
  Mark mark_;
  const CallContext context_{BootClock::now() + std::chrono::minutes(5), {}};
};

TEST_F(FencePassTest, AConflictIsTriedAgain) {
  mark_.fates = {Mark::Fate::conflict, Mark::Fate::conflict};
  EXPECT_EQ(write(token(33, 1)), Passed::done);
  EXPECT_EQ(mark_.version, 1);
}

TEST_F(FencePassTest, ALostReplyIsLookedForInTheMark) {
  mark_.fates = {Mark::Fate::lost_done};
  EXPECT_EQ(write(token(33, 1)), Passed::repeated);
  EXPECT_EQ(mark_.version, 1) << "it was done once";
}

TEST_F(FencePassTest, WhatWasLostOnTheWayIsSentAgain) {
  mark_.fates = {Mark::Fate::lost_undone, Mark::Fate::lost_undone};
  EXPECT_EQ(write(token(33, 1)), Passed::done);
  EXPECT_EQ(mark_.version, 1);
}

TEST_F(FencePassTest, OvertakenWhileInDoubtIsNotCalledRefused) {
  mark_.fates = {Mark::Fate::lost_done};
  mark_.after_a_loss = [this] {
    mark_.record = entered(34, 2);
    ++mark_.version;
  };
  const auto unknown = write(token(33, 1));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::outcome_unknown);
  EXPECT_EQ(unknown.error().refusal->mark, 34);
}

TEST_F(FencePassTest, AnotherWriteOfTheSameHolderLeavesTheDoubt) {
  mark_.fates = {Mark::Fate::lost_done};
  mark_.after_a_loss = [this] {
    mark_.record = entered(33, 1, 0, "another");
    ++mark_.version;
  };
  const auto unknown = write(token(33, 1));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::outcome_unknown);
}

TEST_F(FencePassTest, AFailureAfterADoubtIsStillInDoubt) {
  mark_.fates = {Mark::Fate::lost_undone, Mark::Fate::refused};
  EXPECT_EQ(write(token(33, 1)).error().code, ErrorCode::outcome_unknown);
  mark_.fates = {Mark::Fate::refused};
  EXPECT_EQ(write(token(33, 1)).error().code, ErrorCode::unavailable);
}

TEST_F(FencePassTest, ARefusalIsCountedAndWritesNothing) {
  mark_.record = entered(34, 2);
  mark_.version = 7;
  EXPECT_EQ(write(token(33, 1)).error().code, ErrorCode::fenced_out);
  EXPECT_EQ(mark_.counted, 1);
  EXPECT_EQ(mark_.version, 7);
}

// A machine that is slow makes fewer attempts, not more.
TEST_F(FencePassTest, PausesBetweenAttempts) {
  int attempts = 0;
  FencePass pass = mark_.pass();
  pass.commit = [&](const SeenMark&, const FenceRecord&) -> Result<Commit> {
    ++attempts;
    return Commit::conflict;
  };
  const CallContext context{BootClock::now() + std::chrono::milliseconds(100), {}};
  EXPECT_FALSE(pass_fence(kLedger, {.token = token(33, 1), .write = "mine"}, pass, context));
  EXPECT_LT(attempts, 100);
}

TEST_F(FencePassTest, TimeAndStopEndIt) {
  std::stop_source stop;
  stop.request_stop();
  mark_.fates.assign(3, Mark::Fate::conflict);
  const FenceAttempt attempt{.token = token(33, 1), .write = "mine"};
  EXPECT_EQ(pass_fence(kLedger, attempt, mark_.pass(), {context_.deadline, stop.get_token()})
                .error()
                .code,
            ErrorCode::cancelled);
  EXPECT_EQ(pass_fence(kLedger, attempt, mark_.pass(), {BootClock::now(), {}}).error().code,
            ErrorCode::unavailable);
  mark_.fates = {Mark::Fate::lost_undone};
  EXPECT_EQ(pass_fence(kLedger, attempt, mark_.pass(), {BootClock::now(), {}}).error().code,
            ErrorCode::outcome_unknown);
}

}  // namespace
}  // namespace leasehold::detail
