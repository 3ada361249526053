// Entering a mark by compare and swap.
#include "fence/pass.h"

#include <gtest/gtest.h>

#include <deque>

#include "marks.h"

namespace leasehold::fence {
namespace {

using leasehold::testing::lineage_of;
using leasehold::testing::request_of;
using leasehold::testing::token_of;

// A mark in memory whose transactions go as the test wants, one after the other.
struct Kept {
  enum class Fate { done, conflict, lost_done, lost_undone, refused };
  Mark mark;
  std::int64_t version = 0;
  std::deque<Fate> fates = {};
  std::function<void()> after_a_loss = [] {};
  int counted = 0;

  Pass pass() {
    return {.read = [this]() -> Result<SeenMark> {
              return SeenMark{mark, version};
            },
            .commit = [this](const SeenMark& seen, const Mark& next) { return commit(seen, next); },
            .count_refusal = [this]() -> Status {
              ++counted;
              return {};
            }};
  }

 private:
  Result<Commit> commit(const SeenMark& seen, const Mark& next) {
    const Fate fate = fates.empty() ? Fate::done : fates.front();
    if (!fates.empty()) fates.pop_front();
    if (fate == Fate::refused) return fail(ErrorCode::unavailable, "refused");
    if (fate == Fate::conflict || seen.version != version) return Commit::conflict;
    if (fate != Fate::lost_undone) {
      mark = next;
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
    return fence::pass(kLedger, {.token = holder, .write = "mine"}, kept_.pass(), context_);
  }
  Kept kept_;
  const CallContext context_{BootClock::now() + std::chrono::minutes(5), {}};
};

TEST_F(FencePassTest, AConflictIsTriedAgain) {
  kept_.fates = {Kept::Fate::conflict, Kept::Fate::conflict};
  EXPECT_EQ(write(token_of(33, '1')), Passed::done);
  EXPECT_EQ(kept_.version, 1);
}

TEST_F(FencePassTest, ALostReplyIsLookedForInTheMark) {
  kept_.fates = {Kept::Fate::lost_done};
  EXPECT_EQ(write(token_of(33, '1')), Passed::repeated);
  EXPECT_EQ(kept_.version, 1) << "it was done once";
}

TEST_F(FencePassTest, WhatWasLostOnTheWayIsSentAgain) {
  kept_.fates = {Kept::Fate::lost_undone, Kept::Fate::lost_undone};
  EXPECT_EQ(write(token_of(33, '1')), Passed::done);
  EXPECT_EQ(kept_.version, 1);
}

TEST_F(FencePassTest, OvertakenWhileInDoubtIsNotCalledRefused) {
  kept_.fates = {Kept::Fate::lost_done};
  kept_.after_a_loss = [this] {
    kept_.mark = held(34, '2');
    ++kept_.version;
  };
  const auto unknown = write(token_of(33, '1'));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::outcome_unknown);
  EXPECT_EQ(unknown.error().refusal->mark, 34);
}

TEST_F(FencePassTest, AnotherWriteOfTheSameHolderLeavesTheDoubt) {
  kept_.fates = {Kept::Fate::lost_done};
  kept_.after_a_loss = [this] {
    kept_.mark = held(33, '1', 0, "another");
    ++kept_.version;
  };
  const auto unknown = write(token_of(33, '1'));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::outcome_unknown);
}

TEST_F(FencePassTest, AFailureAfterADoubtIsStillInDoubt) {
  kept_.fates = {Kept::Fate::lost_undone, Kept::Fate::refused};
  EXPECT_EQ(write(token_of(33, '1')).error().code, ErrorCode::outcome_unknown);
  kept_.fates = {Kept::Fate::refused};
  EXPECT_EQ(write(token_of(33, '1')).error().code, ErrorCode::unavailable);
}

TEST_F(FencePassTest, ARefusalIsCountedAndWritesNothing) {
  kept_.mark = held(34, '2');
  kept_.version = 7;
  EXPECT_EQ(write(token_of(33, '1')).error().code, ErrorCode::fenced_out);
  EXPECT_EQ(kept_.counted, 1);
  EXPECT_EQ(kept_.version, 7);
}

// A machine that is slow makes fewer attempts, not more.
TEST_F(FencePassTest, PausesBetweenAttempts) {
  int attempts = 0;
  Pass pass = kept_.pass();
  pass.commit = [&](const SeenMark&, const Mark&) -> Result<Commit> {
    ++attempts;
    return Commit::conflict;
  };
  const CallContext context{BootClock::now() + std::chrono::milliseconds(100), {}};
  EXPECT_FALSE(fence::pass(kLedger, {.token = token_of(33, '1'), .write = "mine"}, pass, context));
  EXPECT_LT(attempts, 100);
}

TEST_F(FencePassTest, TimeAndStopEndIt) {
  std::stop_source stop;
  stop.request_stop();
  kept_.fates.assign(3, Kept::Fate::conflict);
  const Attempt attempt{.token = token_of(33, '1'), .write = "mine"};
  EXPECT_EQ(fence::pass(kLedger, attempt, kept_.pass(), {context_.deadline, stop.get_token()})
                .error()
                .code,
            ErrorCode::cancelled);
  EXPECT_EQ(fence::pass(kLedger, attempt, kept_.pass(), {BootClock::now(), {}}).error().code,
            ErrorCode::unavailable);
  kept_.fates = {Kept::Fate::lost_undone};
  EXPECT_EQ(fence::pass(kLedger, attempt, kept_.pass(), {BootClock::now(), {}}).error().code,
            ErrorCode::outcome_unknown);
}

}  // namespace
}  // namespace leasehold::fence
