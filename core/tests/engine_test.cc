// Every rule that a lease obeys, in virtual time. The test plays the store by hand.
#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "engine/timing.h"
#include "testing/virtual_time.h"

namespace leasehold::engine {
namespace {

using namespace std::chrono_literals;
using leasehold::testing::SeededRandom;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EngineTest : public ::testing::Test {
 protected:
  static LockName name(std::string_view text = "job") { return LockName::parse(text).value(); }

  RequestId acquire(Millis ttl = 30s, Millis wait = 0ms, Millis store_timeout = 5s) {
    const auto request = engine().acquire(now, {name(), OwnerLabel::parse("test").value(),
                                                Ttl::of(ttl).value(), wait, store_timeout});
    collect();
    return request;
  }

  // An uncontended acquire whose reply comes at once.
  RequestId hold(Millis ttl = 30s) {
    const auto request = acquire(ttl);
    take<SendAcquire>();
    grant(request, ttl);
    EXPECT_TRUE(take_notice<AcquireEnded>().result.has_value());
    return request;
  }

  void grant(const RequestId& request, Millis ttl = 30s, std::int64_t token = 7) {
    reply(request, Granted{TokenNumber::of(token).value(), store, ttl, /*fresh=*/true});
  }
  void grant_again(const RequestId& request, Millis ttl = 30s) {
    reply(request, Granted{TokenNumber::of(7).value(), store, ttl, /*fresh=*/false});
  }
  void reply(const RequestId& request, Result<AcquireReply> answer) {
    engine().acquire_replied(now, request, std::move(answer));
    collect();
  }
  void renewal(const RequestId& request, Result<RenewReply> answer) {
    Result<std::vector<RenewReply>> all = std::vector<RenewReply>{};
    if (answer) {
      all->push_back(*answer);
    } else {
      all = fail(answer.error());
    }
    engine().renew_replied(now, std::span(&request, 1), all);
    collect();
  }
  void released(const RequestId& request, Result<ReleaseReply> answer) {
    engine().release_replied(now, request, answer);
    collect();
  }
  void release(const RequestId& request, Millis keep_for = 0ms, Millis timeout = 5s) {
    engine().release(now, request, keep_for, timeout);
    collect();
  }

  void stop_renewing(const RequestId& request) {
    engine().stop_renewing(request);
    engine().check_invariants();
    collect();
  }
  void resume_renewing(const RequestId& request) {
    engine().resume_renewing(now, request);
    engine().check_invariants();
    collect();
  }

  void nudge(const RequestId& request) {
    engine().nudged(now, request);
    collect();
  }
  void cancel(const RequestId& request) {
    engine().cancel(now, request);
    collect();
  }

  // The store is asked, and answers at once.
  void asked_for_lock(const RequestId& request, Result<AcquireReply> answer) {
    take<SendAcquire>();
    reply(request, std::move(answer));
  }
  void asked_to_renew(const RequestId& request, Result<RenewReply> answer) {
    take<SendRenew>();
    renewal(request, std::move(answer));
  }
  void asked_to_release(const RequestId& request, Result<ReleaseReply> answer) {
    take<SendRelease>();
    released(request, std::move(answer));
  }

  // An acquire that has found somebody else, and a place in the line.
  RequestId wait_in_line(Millis wait, Millis recheck, Millis ttl = 30s) {
    const auto request = acquire(ttl, wait);
    asked_for_lock(request, Queued{recheck, "other"});
    return request;
  }
  // A lease whose first renewal is on its way.
  RequestId hold_until_renewal() {
    const auto request = hold(30s);
    pass(10s);
    take<SendRenew>();
    return request;
  }
  LeaseState state_told() { return take_notice<LeaseChanged>().state; }
  Result<ReleaseOutcome> release_told() { return take_notice<ReleaseEnded>().result; }

  // Moves the time forward, stopping at every wake in between.
  void pass(Duration span) {
    const BootTime end = now + span;
    for (;;) {
      const auto wake = engine().next_wake();
      if (!wake || *wake > end) break;
      now = std::max(now, *wake);
      engine().tick(now);
      ++ticks;
      collect();
      ASSERT_TRUE(!engine().next_wake() || *engine().next_wake() > now) << "tick made no progress";
    }
    now = end;
  }

  void collect() {
    Effects effects = engine().take_effects();
    for (auto& call : effects.calls) calls.push_back(std::move(call));
    for (auto& notice : effects.notices) notices.push_back(std::move(notice));
  }

  template <class Kind>
  Kind take() {
    EXPECT_FALSE(calls.empty());
    Kind call = std::get<Kind>(std::move(calls.front()));
    calls.pop_front();
    return call;
  }
  template <class Kind>
  Kind take_notice() {
    EXPECT_FALSE(notices.empty());
    Kind notice = std::get<Kind>(std::move(notices.front()));
    notices.pop_front();
    return notice;
  }
  Duration time_to_renew(const RequestId& request);
  ErrorCode acquire_error() { return take_notice<AcquireEnded>().result.error().code; }

  Engine& engine() { return queues ? queueing : polling; }

  static Error unknown() { return Error(ErrorCode::outcome_unknown, "reply lost"); }
  static Error unavailable() { return Error(ErrorCode::unavailable, "store down"); }

  std::size_t ticks = 0;
  BootTime now{1h};
  SeededRandom random{42};
  StoreId store = StoreId::random(random);
  Engine queueing{true, random};
  Engine polling{false, random};
  bool queues = true;
  std::deque<StoreCall> calls;
  std::deque<Notice> notices;
};

// ---- rule 1: from when a lease counts ------------------------------------------------------

TEST_F(EngineTest, DeadlineCountsFromBeforeTheFirstAttempt) {
  const BootTime asked = now;
  const auto request = acquire(30s);
  now += 3s;  // the reply was slow
  grant(request);
  const auto ended = take_notice<AcquireEnded>();
  ASSERT_TRUE(ended.result);
  EXPECT_EQ(ended.result->deadline, asked + 30s - drift_allowance(30s));
}

TEST_F(EngineTest, HolderEndsBeforeTheStoreDoes) {
  EXPECT_GT(drift_allowance(100ms), 0ms);
  EXPECT_LT(drift_allowance(100ms), 10ms);
  EXPECT_GE(drift_allowance(24h), 24h / 1000);
}

TEST_F(EngineTest, FreshGrantAfterWaitingCountsFromTheCallThatMadeIt) {
  const auto request = wait_in_line(60s, 2s);
  pass(1s);
  nudge(request);
  const BootTime asked = now;
  take<SendAcquire>();
  now += 10ms;
  grant(request);
  const auto ended = take_notice<AcquireEnded>();
  ASSERT_TRUE(ended.result);
  EXPECT_EQ(ended.result->deadline, asked + 30s - drift_allowance(30s));
  EXPECT_THAT(calls, IsEmpty());
}

TEST_F(EngineTest, GrantThatMayBeOldIsConfirmedByOneRenewalAndCountsFromThat) {
  const auto request = wait_in_line(60s, 2s);
  pass(1s);
  nudge(request);
  take<SendAcquire>();
  now += 10ms;
  grant_again(request);
  EXPECT_THAT(notices, IsEmpty()) << "not told before it is confirmed";
  const BootTime confirming = now;
  ASSERT_EQ(take<SendRenew>().calls.size(), 1u);
  now += 5ms;
  renewal(request, RenewReply::renewed);
  const auto ended = take_notice<AcquireEnded>();
  ASSERT_TRUE(ended.result);
  EXPECT_EQ(ended.result->deadline, confirming + 30s - drift_allowance(30s));
}

TEST_F(EngineTest, WaiterWhoseStoreHasDiedIsNotToldThatTheLockIsBusy) {
  const auto request = wait_in_line(10s, 2s);
  pass(3s);
  asked_for_lock(request, fail(unavailable()));
  while (notices.empty()) {
    pass(100ms);
    if (calls.empty()) continue;
    calls.clear();
    if (notices.empty()) reply(request, fail(unavailable()));
  }
  const Error told = take_notice<AcquireEnded>().result.error();
  EXPECT_EQ(told.code, ErrorCode::unavailable);
  EXPECT_THAT(told.message, ::testing::HasSubstr("at last other held it or was next"));
  EXPECT_EQ(told.store_words, "store down");
}

TEST_F(EngineTest, WaiterWhoseGrantWasOverWhenConfirmedTimesOutLikeAnyOther) {
  const auto request = wait_in_line(10s, 2s);
  pass(2s);
  take<SendAcquire>();
  grant_again(request);
  asked_to_renew(request, fail(unavailable()));
  pass(1s);
  asked_to_renew(request, RenewReply::gone);
  take<SendAcquire>();
  pass(10s);
  const Error told = take_notice<AcquireEnded>().result.error();
  EXPECT_EQ(told.code, ErrorCode::timeout) << to_string(told);
}

TEST_F(EngineTest, GrantUnderARetriedIdIsConfirmed) {
  const auto request = acquire();
  asked_for_lock(request, fail(unknown()));
  pass(1s);
  EXPECT_EQ(take<SendAcquire>().call.request, request) << "a retry signs with the same id";
  grant_again(request);
  EXPECT_THAT(notices, IsEmpty());
  asked_to_renew(request, RenewReply::renewed);
  EXPECT_TRUE(take_notice<AcquireEnded>().result);
}

// The call that was lost may come late, and be granted when the grant of the other is over.
TEST_F(EngineTest, AConfirmationOfALaterGrantIsNotTakenForOneOfTheFirst) {
  const auto request = acquire(4s, 0ms, 30s);
  asked_for_lock(request, fail(unknown()));
  pass(1s);
  take<SendAcquire>();
  now += 3s;
  grant(request, 4s, /*token=*/7);
  take<SendRenew>();
  const BootTime renewing = now;
  now += 1s;
  renewal(request, RenewReply::renewed);
  EXPECT_THAT(notices, IsEmpty()) << "it may be another grant";
  take<SendAcquire>();
  now += 1s;
  reply(request, Granted{TokenNumber::of(9).value(), store, 4s, /*fresh=*/false});
  const auto ended = take_notice<AcquireEnded>();
  ASSERT_TRUE(ended.result);
  EXPECT_EQ(ended.result->token, TokenNumber::of(9));
  EXPECT_EQ(ended.result->deadline, renewing + 4s - drift_allowance(4s));
}

TEST_F(EngineTest, WhatIsToldOfAGrantIsNotBelievedAfterItsEnd) {
  const auto request = acquire(4s, 0ms, 30s);
  take<SendAcquire>();
  now += 3s;
  grant(request, 4s);
  take<SendRenew>();
  now += 2s;
  renewal(request, RenewReply::renewed);
  take<SendAcquire>();
  now += 3s;
  grant_again(request, 4s);
  EXPECT_THAT(notices, IsEmpty());
  asked_to_renew(request, RenewReply::gone);
  take<SendAcquire>();
  grant(request, 4s);
  EXPECT_TRUE(take_notice<AcquireEnded>().result) << "a new one counts from the call that made it";
}

TEST_F(EngineTest, AConfirmationIsEnoughWhileNothingElseCanHaveBeenGranted) {
  const auto request = wait_in_line(60s, 2s, 10s);
  for (int i = 0; i < 10; ++i) {
    pass(2s);
    asked_for_lock(request, Queued{2s, "other"});
  }
  pass(2s);
  take<SendAcquire>();
  now += 1s;
  grant_again(request, 10s);
  now += 1s;
  asked_to_renew(request, RenewReply::renewed);
  EXPECT_TRUE(take_notice<AcquireEnded>().result) << "2 s ago the lock was somebody else's";
}

TEST_F(EngineTest, FirstGrantThatComesVeryLateIsConfirmed) {
  const auto request = acquire(4s, 0ms, 10s);
  take<SendAcquire>();
  now += 3s;
  grant(request, 4s);
  EXPECT_THAT(notices, IsEmpty());
  asked_to_renew(request, RenewReply::renewed);
  EXPECT_EQ(take_notice<AcquireEnded>().result->deadline, now + 4s - drift_allowance(4s));
}

TEST_F(EngineTest, ExpiredGrantIsNeverAnswered) {
  const auto request = acquire(1s, 0ms, 10s);
  take<SendAcquire>();
  now += 5s;
  grant(request, 1s);
  asked_to_renew(request, RenewReply::gone);
  EXPECT_THAT(notices, IsEmpty());
  EXPECT_EQ(take<SendAcquire>().call.request, request) << "asked anew";
}

TEST_F(EngineTest, ConfirmationThatTookLongerThanTheTtlIsNotTrusted) {
  const auto request = acquire(1s, 0ms, 10s);
  take<SendAcquire>();
  now += 900ms;
  grant(request, 1s);
  take<SendRenew>();
  now += 2s;
  renewal(request, RenewReply::renewed);
  EXPECT_THAT(notices, IsEmpty());
  pass(1s);
  take<SendRenew>();
}

TEST_F(EngineTest, StoreSlowerThanTheTtlEndsInAnAnswer) {
  const BootTime asked = now;
  const auto request = acquire(100ms, 0ms, 5s);
  while (notices.empty() && now < asked + 1min) {
    now += 150ms;  // every round trip takes longer than the lease
    engine().tick(now);
    collect();
    if (calls.empty()) continue;
    if (std::holds_alternative<SendAcquire>(calls.front())) {
      calls.pop_front();
      grant(request, 100ms);
    } else if (std::holds_alternative<SendRenew>(calls.front())) {
      calls.pop_front();
      renewal(request, RenewReply::gone);
    }
  }
  EXPECT_LE(now, asked + 11s) << "about wait + store_timeout";
  EXPECT_EQ(acquire_error(), ErrorCode::outcome_unknown);
}

TEST_F(EngineTest, EveryCallOfAnAcquireEndsWithTheTimeOfItsCaller) {
  const BootTime latest = now + 1s;
  const auto request = acquire(1500ms, 0ms, 1s);
  take<SendAcquire>();
  now += 800ms;
  grant(request, 1500ms);
  EXPECT_EQ(take<SendRenew>().deadline, answer_wanted_by(now, latest));
  now += 100ms;
  renewal(request, RenewReply::gone);
  EXPECT_EQ(take<SendAcquire>().deadline, answer_wanted_by(now, latest));
}

TEST_F(EngineTest, StoreIsToAnswerBeforeTheCallerIsTold) {
  EXPECT_EQ(answer_wanted_by(now, now + 1min), now + 1min - 50ms);
  EXPECT_EQ(answer_wanted_by(now, now + 100ms), now + 95ms);
  EXPECT_EQ(answer_wanted_by(now, now - 100ms), now - 100ms)
      << "never later than the caller's limit";
}

TEST_F(EngineTest, DefiniteFailureAtTheEndIsToldAsWhatItIs) {
  for (const Millis wait : {0ms, 2000ms}) {
    const auto request = acquire(30s, wait, 5s);
    now = take<SendAcquire>().deadline;
    reply(request, fail(unavailable()));
    EXPECT_EQ(acquire_error(), ErrorCode::unavailable) << wait.count();
    EXPECT_THAT(calls, IsEmpty()) << "no attempt whose outcome nobody could know";
  }
}

TEST_F(EngineTest, EveryCallOfAWaiterEndsWithTheTimeOfItsCaller) {
  const BootTime latest = now + 2s + 1s;
  const auto request = acquire(1500ms, 2s, 1s);
  asked_for_lock(request, Queued{1900ms, "other"});
  pass(1900ms);
  EXPECT_EQ(take<SendAcquire>().deadline, answer_wanted_by(now, now + 1s));
  now += 800ms;
  grant(request, 1500ms);
  EXPECT_EQ(take<SendRenew>().deadline, answer_wanted_by(now, latest));
}

// ---- rule 2: renewal -----------------------------------------------------------------------

TEST_F(EngineTest, RenewsAtAThirdOfTheTtlWithJitter) {
  hold(30s);
  const BootTime granted = now;
  pass(10s);
  const auto renew = take<SendRenew>();
  EXPECT_EQ(renew.calls.size(), 1u);
  EXPECT_THAT(calls, IsEmpty());
  std::set<Duration> intervals;
  for (int i = 0; i < 20; ++i) intervals.insert(jittered(renewal_interval(30s), random));
  EXPECT_GT(intervals.size(), 3u);
  EXPECT_GE(*intervals.begin(), 9s);
  EXPECT_LE(*intervals.rbegin(), 10s);
  EXPECT_LE(now - granted, 10s);
}

TEST_F(EngineTest, RenewalMovesTheDeadlineFromWhenItWasSent) {
  const auto request = hold_until_renewal();
  const BootTime latest = now;
  now += 2s;  // a slow reply
  renewal(request, RenewReply::renewed);
  const auto changed = take_notice<LeaseChanged>();
  EXPECT_EQ(changed.state, LeaseState::held);
  EXPECT_LE(changed.deadline, latest + 30s - drift_allowance(30s));
  EXPECT_GT(changed.deadline, latest + 28s - drift_allowance(30s));
}

TEST_F(EngineTest, FailedRenewalIsUncertainRetriedAndLostAtTheDeadline) {
  const BootTime asked = now;
  const auto request = hold_until_renewal();
  renewal(request, fail(unavailable()));
  EXPECT_EQ(state_told(), LeaseState::uncertain);
  int retries = 0;
  while (notices.empty()) {
    pass(10ms);
    while (!calls.empty()) {
      take<SendRenew>();
      ++retries;
      renewal(request, fail(unknown()));
    }
    while (!notices.empty() &&
           std::get<LeaseChanged>(notices.front()).state == LeaseState::uncertain) {
      notices.pop_front();
    }
  }
  const auto lost = take_notice<LeaseChanged>();
  EXPECT_EQ(lost.state, LeaseState::lost);
  EXPECT_GT(retries, 5);
  EXPECT_GE(now, asked + 30s - drift_allowance(30s));
  EXPECT_LE(now, asked + 30s) << "told before the store's own end";
}

TEST_F(EngineTest, LossIsToldAtTheDeadlineAlthoughTheRenewalNeverAnswers) {
  const BootTime asked = now;
  hold_until_renewal();
  pass(asked + 30s - drift_allowance(30s) - now - 1ns);
  EXPECT_THAT(notices, IsEmpty());
  pass(1ns);
  EXPECT_EQ(state_told(), LeaseState::lost);
}

TEST_F(EngineTest, UncertainLeaseRecovers) {
  const auto request = hold_until_renewal();
  renewal(request, fail(unavailable()));
  take_notice<LeaseChanged>();
  pass(1s);
  asked_to_renew(request, RenewReply::renewed);
  EXPECT_EQ(state_told(), LeaseState::held);
}

TEST_F(EngineTest, RenewalOfAnEndedGrantIsLostAtOnceAndNeverReacquires) {
  const auto request = hold_until_renewal();
  renewal(request, RenewReply::gone);
  EXPECT_EQ(state_told(), LeaseState::lost);
  pass(1h);
  EXPECT_THAT(calls, IsEmpty());
}

TEST_F(EngineTest, LateRenewalDoesNotBringALostLeaseBack) {
  const auto request = hold(30s);
  pass(30s);
  take<SendRenew>();
  EXPECT_EQ(state_told(), LeaseState::lost);
  renewal(request, RenewReply::renewed);
  EXPECT_THAT(notices, IsEmpty());
}

TEST_F(EngineTest, RenewalAnsweredAfterTheDeadlineDoesNotBringTheLeaseBack) {
  const BootTime asked = now;
  const auto request = hold_until_renewal();
  now = asked + 31s;  // frozen: no tick in between, but state() has said lost since the deadline
  renewal(request, RenewReply::renewed);
  EXPECT_EQ(state_told(), LeaseState::lost);
}

TEST_F(EngineTest, StoresWordThatAGrantEndedIsLoss) {
  const auto request = hold();
  engine().ended(request);
  collect();
  EXPECT_EQ(state_told(), LeaseState::lost);
}

TEST_F(EngineTest, RenewalsGoInBatches) {
  std::vector<RequestId> requests;
  for (int i = 0; i < 2500; ++i) requests.push_back(hold(30s));
  std::size_t renewed = 0;
  std::size_t batches = 0;
  pass(10s);
  for (; !calls.empty(); ++batches) {
    const auto batch = take<SendRenew>();
    EXPECT_LE(batch.calls.size(), 1000u);
    renewed += batch.calls.size();
  }
  EXPECT_EQ(renewed, 2500u);
  EXPECT_LE(batches, 8u);
  EXPECT_LE(ticks, batches + 1) << "and not one for each lease";
}

TEST_F(EngineTest, OneLeaseInDoubtLeavesTheOthersOfItsBatchAlone) {
  const std::vector<RequestId> requests = {hold(30s), hold(30s)};
  pass(15s);
  notices.clear();
  engine().renew_replied(now, requests, std::vector{RenewReply::unknown, RenewReply::renewed});
  collect();
  const auto doubtful = take_notice<LeaseChanged>();
  EXPECT_EQ(doubtful.request, requests[0]);
  EXPECT_EQ(doubtful.state, LeaseState::uncertain);
  const auto sure = take_notice<LeaseChanged>();
  EXPECT_EQ(sure.request, requests[1]);
  EXPECT_EQ(sure.state, LeaseState::held);
}

TEST_F(EngineTest, ShortTtlDoesNotHurryALongOne) {
  hold(100ms);
  hold(30s);
  pass(10s);
  for (; !calls.empty(); calls.pop_front()) {
    const auto& send = std::get<SendRenew>(calls.front());
    std::set<Ttl> ttls;
    for (const auto& call : send.calls) ttls.insert(call.ttl);
    EXPECT_EQ(ttls.size(), 1u);
  }
}

// How long the store may take for the next renewal of this lease; the others' are answered at once.
Duration EngineTest::time_to_renew(const RequestId& request) {
  for (;; pass(*engine().next_wake() - now)) {
    while (!calls.empty()) {
      const auto send = take<SendRenew>();
      for (const RenewCall& call : send.calls) {
        if (call.request == request) return send.deadline - now;
        renewal(call.request, RenewReply::renewed);
      }
    }
  }
}

TEST_F(EngineTest, LostShortLeaseDoesNotHurryAnother) {
  const auto forgotten = hold(100ms);
  engine().ended(forgotten);
  collect();
  EXPECT_EQ(state_told(), LeaseState::lost);
  const auto lease = hold(300ms);
  EXPECT_EQ(time_to_renew(lease), renewal_interval(300ms));
}

TEST_F(EngineTest, LivingShortLeaseDoesNotHurryALongOne) {
  hold(100ms);
  const auto lease = hold(6s);
  EXPECT_EQ(time_to_renew(lease), renewal_interval(6s));
}

TEST_F(EngineTest, LivingShortLeaseOfTheSameLaneDoesNotHurryALongOne) {
  hold(2s);
  const auto lease = hold(6s);
  EXPECT_EQ(renewal_lane(2s), renewal_lane(6s));
  EXPECT_EQ(time_to_renew(lease), renewal_interval(6s));
}

TEST_F(EngineTest, EveryTtlHasALaneWithTtlsUpToFourTimesAsLong) {
  EXPECT_EQ(renewal_lane(Ttl::kMin), 0u);
  EXPECT_EQ(renewal_lane(Ttl::kMax), kRenewalLanes - 1);
  for (Millis ttl = Ttl::kMin; 4 * ttl <= Ttl::kMax; ttl = ttl * 3 / 2) {
    EXPECT_EQ(renewal_lane(4 * ttl), renewal_lane(ttl) + 1) << ttl.count();
  }
}

TEST_F(EngineTest, ConfirmationHasNoLaneWhereItWouldHoldUpRenewals) {
  const auto request = acquire(30s, 60s);
  asked_for_lock(request, fail(unknown()));
  pass(1s);
  grant_again(request);
  calls.clear();
  renewal(request, fail(unavailable()));
  pass(1s);
  EXPECT_EQ(take<SendRenew>().lane, std::nullopt);
}

// ---- a lease that is kept but no longer renewed --------------------------------------------

TEST_F(EngineTest, LeaseThatIsNoLongerRenewedIsKeptUntilItsDeadlineAndThenLost) {
  const BootTime asked = now;
  const auto request = hold(30s);
  stop_renewing(request);
  pass(asked + 30s - drift_allowance(30s) - now - 1ns);
  EXPECT_THAT(calls, IsEmpty()) << "neither a renewal nor a release";
  EXPECT_THAT(notices, IsEmpty());
  pass(1ns);
  EXPECT_EQ(state_told(), LeaseState::lost);
  pass(1h);
  EXPECT_THAT(calls, IsEmpty());
}

TEST_F(EngineTest, RenewalUnderWayStillCountsButIsTheLast) {
  const auto request = hold_until_renewal();
  const BootTime latest = now;
  stop_renewing(request);
  pass(2s);
  renewal(request, RenewReply::renewed);
  const auto changed = take_notice<LeaseChanged>();
  EXPECT_EQ(changed.state, LeaseState::held);
  EXPECT_LE(changed.deadline, latest + 30s - drift_allowance(30s));
  pass(changed.deadline - now);
  EXPECT_THAT(calls, IsEmpty());
  EXPECT_EQ(state_told(), LeaseState::lost);
}

TEST_F(EngineTest, RenewalThatFailsAfterTheStopIsNotRetried) {
  const auto request = hold_until_renewal();
  stop_renewing(request);
  renewal(request, fail(unavailable()));
  EXPECT_THAT(notices, IsEmpty());
  pass(15s);
  EXPECT_THAT(calls, IsEmpty());
  pass(15s);
  EXPECT_EQ(state_told(), LeaseState::lost);
}

TEST_F(EngineTest, RetryOfAnUncertainLeaseStopsToo) {
  const auto request = hold_until_renewal();
  renewal(request, fail(unavailable()));
  EXPECT_EQ(state_told(), LeaseState::uncertain);
  stop_renewing(request);
  pass(1h);
  EXPECT_THAT(calls, IsEmpty());
  EXPECT_EQ(state_told(), LeaseState::lost);
}

TEST_F(EngineTest, RenewalThatStoodInLineWhenItWasStoppedIsCalledOff) {
  const auto request = hold_until_renewal();
  EXPECT_FALSE(engine().call_off_renewal(request));
  stop_renewing(request);
  EXPECT_TRUE(engine().call_off_renewal(request));
  renewal(request, RenewReply::renewed);
  EXPECT_THAT(notices, IsEmpty()) << "it has no call any more that could be answered";
  resume_renewing(request);
  EXPECT_FALSE(engine().call_off_renewal(request));
  pass(1ms);
  asked_to_renew(request, RenewReply::renewed);
  EXPECT_EQ(state_told(), LeaseState::held);
}

TEST_F(EngineTest, BatchLeavesOutWhatIsNoLongerRenewed) {
  std::set<RequestId> stopped;
  for (int i = 0; i < 20; ++i) {
    hold(30s);
    stopped.insert(hold(30s));
  }
  pass(8s);  // their timers now stand for the renewals
  for (const RequestId& each : stopped) stop_renewing(each);
  pass(2s);
  std::size_t renewed = 0;
  while (!calls.empty()) {
    for (const RenewCall& call : take<SendRenew>().calls) {
      EXPECT_FALSE(stopped.contains(call.request));
      ++renewed;
    }
  }
  EXPECT_EQ(renewed, 20u);
}

TEST_F(EngineTest, ResumedLeaseIsRenewedAtOnce) {
  const auto request = hold(30s);
  stop_renewing(request);
  pass(20s);
  resume_renewing(request);
  pass(0s);
  asked_to_renew(request, RenewReply::renewed);
  EXPECT_EQ(take_notice<LeaseChanged>().deadline, now + 30s - drift_allowance(30s));
  pass(10s);
  take<SendRenew>();
}

TEST_F(EngineTest, ResumingDoesNotBringALostLeaseBack) {
  const auto request = hold(30s);
  stop_renewing(request);
  now += 31s;  // no timer ran
  resume_renewing(request);
  pass(1h);
  EXPECT_THAT(calls, IsEmpty());
  EXPECT_EQ(state_told(), LeaseState::lost);
  resume_renewing(request);
  pass(1h);
  EXPECT_THAT(calls, IsEmpty());
  EXPECT_THAT(notices, IsEmpty());
}

TEST_F(EngineTest, StoppingTwiceOrAfterTheEndIsHarmless) {
  const auto request = hold(30s);
  resume_renewing(request);
  EXPECT_THAT(calls, IsEmpty()) << "it was not stopped: nothing is due";
  stop_renewing(request);
  stop_renewing(request);
  release(request);
  stop_renewing(request);
  asked_to_release(request, ReleaseReply::released);
  EXPECT_EQ(release_told().value(), ReleaseOutcome::released);
  stop_renewing(request);
  resume_renewing(request);
  EXPECT_TRUE(engine().settled());
  EXPECT_EQ(engine().next_wake(), std::nullopt);
}

TEST_F(EngineTest, DroppedLeaseThatIsNoLongerRenewedIsReleased) {
  const auto request = hold(30s);
  stop_renewing(request);
  engine().drop(now, request);
  collect();
  asked_to_release(request, ReleaseReply::released);
  EXPECT_TRUE(engine().settled());
}

// ---- rule 3: lost replies ------------------------------------------------------------------

TEST_F(EngineTest, AcquireWithoutAnyAnswerIsUnknownAndTakenBackLater) {
  const auto request = acquire(30s, 0ms, 5s);
  take<SendAcquire>();
  pass(5s);
  EXPECT_EQ(acquire_error(), ErrorCode::outcome_unknown);
  EXPECT_THAT(calls, IsEmpty()) << "rule 4: a release must not overtake the acquire";
  EXPECT_FALSE(engine().settled());
  grant(request);
  EXPECT_EQ(take<SendRelease>().call.request, request);
  released(request, fail(unavailable()));
  pass(10s);
  asked_to_release(request, ReleaseReply::released);
  EXPECT_TRUE(engine().settled());
  EXPECT_THAT(notices, IsEmpty());
}

TEST_F(EngineTest, AmbiguousAcquireIsUnknownNeverUnavailable) {
  const auto request = acquire(30s, 0ms, 1s);
  while (notices.empty()) {
    asked_for_lock(request, fail(unknown()));
    pass(1s);
  }
  EXPECT_EQ(acquire_error(), ErrorCode::outcome_unknown);
}

TEST_F(EngineTest, UnknownStaysUnknownWhenTheStoreGoesDownAfterwards) {
  const auto request = acquire();
  asked_for_lock(request, fail(unknown()));
  pass(1s);
  asked_for_lock(request, fail(unavailable()));
  EXPECT_EQ(acquire_error(), ErrorCode::outcome_unknown);
  take<SendRelease>();
}

TEST_F(EngineTest, SecondAnswerToOneCallIsIgnored) {
  const auto request = acquire();
  take<SendAcquire>();
  grant(request);
  EXPECT_TRUE(take_notice<AcquireEnded>().result);
  grant(request);
  reply(request, fail(unavailable()));
  EXPECT_THAT(notices, IsEmpty());
  EXPECT_THAT(calls, IsEmpty());
}

TEST_F(EngineTest, TryOnAStoreThatIsDownIsToldAtOnceAndLeavesNothing) {
  const auto request = acquire();
  asked_for_lock(request, fail(unavailable()));
  EXPECT_EQ(acquire_error(), ErrorCode::unavailable);
  EXPECT_THAT(calls, IsEmpty());
  EXPECT_TRUE(engine().settled());
}

TEST_F(EngineTest, WaitingRetriesAStoreThatIsDownUntilTheWaitEnds) {
  const auto request = acquire(30s, 10s);
  int attempts = 0;
  while (notices.empty()) {
    while (!calls.empty()) {
      take<SendAcquire>();
      ++attempts;
      reply(request, fail(unavailable()));
    }
    pass(50ms);
  }
  EXPECT_EQ(acquire_error(), ErrorCode::unavailable);
  EXPECT_GT(attempts, 5);
  EXPECT_LT(attempts, 60) << "backs off";
}

TEST_F(EngineTest, WrongInputIsNotRetried) {
  const auto request = acquire(30s, 10s);
  asked_for_lock(request, fail(Error(ErrorCode::unsupported, "no")));
  EXPECT_EQ(acquire_error(), ErrorCode::unsupported);
}

// ---- rule 4: release -----------------------------------------------------------------------

TEST_F(EngineTest, ReleaseTellsReleased) {
  const auto request = hold();
  release(request);
  EXPECT_EQ(take<SendRelease>().call.request, request);
  released(request, ReleaseReply::released);
  EXPECT_EQ(release_told().value(), ReleaseOutcome::released);
  EXPECT_EQ(engine().next_wake(), std::nullopt);
}

TEST_F(EngineTest, ReleaseOfAGrantThatHadEndedIsTooLate) {
  const auto request = hold();
  release(request);
  asked_to_release(request, ReleaseReply::not_held);
  EXPECT_EQ(release_told().value(), ReleaseOutcome::too_late);
}

TEST_F(EngineTest, ReleaseAfterTheDeadlineIsTooLateEvenBeforeATimerRan) {
  const auto request = hold(30s);
  now += 31s;  // frozen: no tick in between
  release(request);
  EXPECT_EQ(state_told(), LeaseState::lost);
  EXPECT_EQ(release_told().value(), ReleaseOutcome::too_late);
  take<SendRelease>();  // what may be left at the store is withdrawn all the same
}

TEST_F(EngineTest, ReleaseWhoseFirstReplyWasLostIsRetriedAndNotGuessed) {
  const auto request = hold();
  release(request);
  asked_to_release(request, fail(unknown()));
  pass(100ms);
  EXPECT_EQ(take<SendRelease>().call.request, request);
  released(request, ReleaseReply::not_held);
  EXPECT_EQ(release_told().error().code, ErrorCode::outcome_unknown);
}

TEST_F(EngineTest, ReleaseAnswersWithinItsTimeAndGoesOnInTheBackground) {
  const auto request = hold();
  release(request, 0ms, 2s);
  take<SendRelease>();
  pass(2s);
  EXPECT_EQ(release_told().error().code, ErrorCode::outcome_unknown);
  released(request, fail(unavailable()));
  pass(5s);
  asked_to_release(request, ReleaseReply::released);
  EXPECT_THAT(notices, IsEmpty());
  EXPECT_TRUE(engine().settled());
}

TEST_F(EngineTest, ReleaseWhileTheStoreIsDownIsUnavailable) {
  const auto request = hold();
  release(request, 0ms, 1s);
  while (notices.empty()) {
    while (!calls.empty()) {
      asked_to_release(request, fail(unavailable()));
    }
    pass(10ms);
  }
  EXPECT_EQ(release_told().error().code, ErrorCode::unavailable);
}

TEST_F(EngineTest, ReleaseDuringARenewalDoesNotComeBackToLife) {
  const auto request = hold_until_renewal();
  release(request);
  take<SendRelease>();
  renewal(request, RenewReply::renewed);
  EXPECT_THAT(notices, IsEmpty());
  released(request, ReleaseReply::released);
  EXPECT_EQ(release_told().value(), ReleaseOutcome::released);
  pass(1h);
  EXPECT_THAT(calls, IsEmpty());
}

TEST_F(EngineTest, StoppedReleaseIsToldAtOnceAndGoesOnInTheBackground) {
  const auto request = hold();
  release(request);
  asked_to_release(request, fail(Error(ErrorCode::cancelled, "stop was requested")));
  EXPECT_THAT(notices, IsEmpty()) << "not told before the caller wants it";
  cancel(request);
  EXPECT_EQ(release_told().error().code, ErrorCode::cancelled);
  pass(5s);
  asked_to_release(request, ReleaseReply::released);
  EXPECT_THAT(notices, IsEmpty());
  EXPECT_TRUE(engine().settled());
}

TEST_F(EngineTest, KeepForTravelsWithTheRelease) {
  const auto request = hold();
  release(request, 60s);
  EXPECT_EQ(take<SendRelease>().call.keep_for, 60s);
}

TEST_F(EngineTest, DroppedLeaseIsReleasedAndNobodyIsTold) {
  const auto request = hold();
  engine().drop(now, request);
  collect();
  asked_to_release(request, ReleaseReply::released);
  EXPECT_THAT(notices, IsEmpty());
  EXPECT_TRUE(engine().settled());
}

// ---- rule 6: waiting -----------------------------------------------------------------------

TEST_F(EngineTest, TryOnABusyLockIsBusyAndNamesTheHolder) {
  const auto request = acquire();
  EXPECT_FALSE(take<SendAcquire>().call.queue);
  reply(request, Busy{"web-1:4711"});
  const auto ended = take_notice<AcquireEnded>();
  EXPECT_EQ(ended.result.error().code, ErrorCode::busy);
  EXPECT_THAT(ended.result.error().message, ::testing::HasSubstr("web-1:4711"));
  EXPECT_THAT(calls, IsEmpty());
}

TEST_F(EngineTest, WaiterQueuesAndAsksAgainWhenNudged) {
  const auto request = acquire(30s, 60s);
  EXPECT_TRUE(take<SendAcquire>().call.queue);
  reply(request, Queued{10s, "other"});
  pass(5s);
  EXPECT_THAT(calls, IsEmpty()) << "does not poll";
  nudge(request);
  EXPECT_EQ(take<SendAcquire>().call.request, request);
}

TEST_F(EngineTest, NudgeThatCrossesAReplyIsNotLost) {
  const auto request = acquire(30s, 60s);
  take<SendAcquire>();
  nudge(request);
  EXPECT_THAT(calls, IsEmpty());
  reply(request, Queued{10s, "other"});
  take<SendAcquire>();
}

TEST_F(EngineTest, WaiterRechecksWithoutANudge) {
  wait_in_line(60s, 2s);
  pass(2s);
  take<SendAcquire>();
}

TEST_F(EngineTest, WaitEndsInTimeWithTimeoutAndGivesUpThePlace) {
  const BootTime asked = now;
  const auto request = wait_in_line(5s, 20s);
  pass(5s - 1ns);
  EXPECT_THAT(notices, IsEmpty());
  pass(1ns);
  EXPECT_EQ(acquire_error(), ErrorCode::timeout);
  EXPECT_EQ(now, asked + 5s);
  EXPECT_EQ(take<SendRelease>().call.request, request);
}

TEST_F(EngineTest, WithoutAQueuePollsAnywhereUpToAGrowingPause) {
  queues = false;
  const auto request = acquire(30s, 1h);
  EXPECT_FALSE(take<SendAcquire>().call.queue);
  std::vector<Duration> pauses;
  for (int i = 0; i < 200; ++i) {
    reply(request, Busy{"other"});
    const BootTime since = now;
    pass(*engine().next_wake() - now);
    pauses.push_back(now - since);
    take<SendAcquire>();
  }
  EXPECT_LE(pauses.front(), 5ms);
  EXPECT_LE(pauses[1], 10ms);
  const auto [shortest, longest] = std::minmax_element(pauses.begin() + 10, pauses.end());
  EXPECT_GE(*shortest, 1ms);
  EXPECT_LT(*shortest, 25ms);
  EXPECT_GT(*longest, 220ms);
  EXPECT_LE(*longest, 250ms);
}

TEST_F(EngineTest, CancelledWaiterIsToldAtOnceAndWithdraws) {
  const auto request = wait_in_line(60s, 10s);
  cancel(request);
  EXPECT_EQ(acquire_error(), ErrorCode::cancelled);
  take<SendRelease>();
}

TEST_F(EngineTest, CancelDuringACallWaitsForItBeforeItWithdraws) {
  const auto request = acquire(30s, 60s);
  take<SendAcquire>();
  cancel(request);
  EXPECT_EQ(acquire_error(), ErrorCode::cancelled);
  EXPECT_THAT(calls, IsEmpty());
  grant(request);
  EXPECT_EQ(take<SendRelease>().call.request, request);
}

TEST_F(EngineTest, GrantThatCrossesTheTimeoutIsGivenBack) {
  const auto request = wait_in_line(5s, 4s);
  pass(4s);
  take<SendAcquire>();
  pass(1s);
  EXPECT_EQ(acquire_error(), ErrorCode::timeout);
  grant(request);
  take<SendRelease>();
  EXPECT_THAT(notices, IsEmpty());
}

// ---- a passive machine ---------------------------------------------------------------------

TEST(EngineTraceTest, SameSeedSameTrace) {
  const auto trace = [](std::uint64_t seed) {
    SeededRandom random(seed);
    Engine engine(true, random);
    BootTime now(1h);
    std::vector<std::string> lines;
    for (int i = 0; i < 50; ++i) {
      const auto request =
          engine.acquire(now, {LockName::parse("job").value(), OwnerLabel::parse("t").value(),
                               Ttl::of(1s).value(), 0ms, 1s});
      engine.acquire_replied(
          now, request,
          Granted{TokenNumber::of(i + 1).value(), StoreId::random(random), Millis(1s), true});
    }
    (void)engine.take_effects();
    for (int step = 0; step < 500; ++step) {
      now = *engine.next_wake();
      engine.tick(now);
      for (auto& call : engine.take_effects().calls) {
        const auto& send = std::get<SendRenew>(call);
        std::vector<RequestId> ids;
        for (const auto& item : send.calls) ids.push_back(item.request);
        lines.push_back(std::to_string(now.time_since_epoch().count()) + ids.front().hex());
        engine.renew_replied(now, ids, std::vector(ids.size(), RenewReply::renewed));
      }
    }
    return lines;
  };
  EXPECT_EQ(trace(1), trace(1));
  EXPECT_NE(trace(1), trace(2));
}

}  // namespace
}  // namespace leasehold::engine
