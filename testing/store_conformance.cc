#include "testing/store_conformance.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <thread>

#include "testing/held.h"
#include "testing/raw_store.h"
#include "testing/results.h"
#include "testing/worker.h"

namespace leasehold::testing {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

namespace {

void wait_for(const std::stop_token& stop) {
  std::promise<void> told;
  const std::stop_callback callback(stop, [&] { told.set_value(); });
  told.get_future().wait();
}

std::int64_t token_in(const std::string& line) {
  EXPECT_THAT(line, StartsWith("held "));
  return line.size() > 5 ? std::stoll(line.substr(5)) : -1;
}

}  // namespace

void expect_threads_exclude_each_other(Client& client, int threads, int times) {
  int number = 0;  // guarded by the lock alone
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&] {
      for (int turn = 0; turn < times; ++turn) {
        auto lease = client.acquire("job", {.wait = 60s});
        ASSERT_TRUE(lease) << to_string(lease.error());
        ++number;
        ASSERT_TRUE(lease->release());
      }
    });
  }
  for (auto& thread : running) thread.join();
  EXPECT_EQ(number, threads * times);
}

bool StoreConformance::fenced() {
  return store->open()->traits().guarantee == Guarantee::correctness;
}

void StoreConformance::expect_larger(std::int64_t later, std::int64_t earlier) {
  if (fenced()) {
    EXPECT_GT(later, earlier);
  }
}

LockStatus StoreConformance::status(Client& client, const std::string& lock) {
  return client.inspect(lock_name(lock)).value();
}

void StoreConformance::wait_for_waiters(Client& client, const std::string& lock,
                                        std::size_t count) {
  // A store has no event for the length of its queue, so this one is polled.
  while (status(client, lock).waiters.size() != count) std::this_thread::sleep_for(1ms);
}

// ---- one holder ----------------------------------------------------------------------------

TEST_P(StoreConformance, OneHolderAtATime) {
  Client one = client();
  Client two = client();
  auto lease = one.acquire("job");
  ASSERT_TRUE(lease);
  const auto refused = two.acquire("job");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::busy);
  EXPECT_THAT(refused.error().message, HasSubstr(default_owner_label().str()));
  EXPECT_TRUE(two.acquire("another")) << "other locks are free";
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
  EXPECT_TRUE(two.acquire("job"));
}

TEST_P(StoreConformance, SixteenProcessesExcludeEachOther) {
  const std::string file = folder.file("number");
  constexpr int processes = 16;
  constexpr int times = 20;
  std::vector<Worker> workers;
  for (int i = 0; i < processes; ++i) {
    workers.push_back(Worker::count(store->url(), "job", file, times));
  }
  for (Worker& worker : workers) EXPECT_EQ(worker.wait(), 0);
  int number = 0;
  std::ifstream(file) >> number;
  EXPECT_EQ(number, processes * times) << "an update was lost";
  std::ifstream tokens(file + ".tokens");
  std::int64_t last = 0;
  int seen = 0;
  for (std::int64_t token = 0; tokens >> token; ++seen) {
    if (fenced()) {
      EXPECT_GT(token, last);
    }
    last = token;
  }
  EXPECT_EQ(seen, processes * times);
}

TEST_P(StoreConformance, ManyThreadsOfOneClientExcludeEachOther) {
  Client shared = client();
  expect_threads_exclude_each_other(shared, 8, 25);
}

TEST_P(StoreConformance, AStoreWithoutModesSaysWhy) {
  Client one = client();
  const StoreTraits& traits = one.store();
  for (const AcquireOptions& options :
       {AcquireOptions{.mode = Mode::shared()}, AcquireOptions{.mode = Mode::permit_of(2)},
        AcquireOptions{.note = "here"}}) {
    auto lease = one.acquire("job", options);
    EXPECT_EQ(lease.has_value(), traits.modes);
    if (lease) {
      EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
      continue;
    }
    EXPECT_EQ(lease.error().code, ErrorCode::unsupported);
    EXPECT_THAT(lease.error().message, HasSubstr(traits.why_no_modes));
  }
  EXPECT_TRUE(one.acquire("job"));
}

// ---- waiting -------------------------------------------------------------------------------

TEST_P(StoreConformance, WaitersComeInTheOrderOfArrival) {
  Client holder = client();
  if (!holder.store().queues) return;  // nothing promised
  auto lease = holder.acquire("job");
  ASSERT_TRUE(lease);
  std::vector<Worker> waiters;
  for (std::size_t i = 0; i < 5; ++i) {
    waiters.push_back(Worker::hold(store->url(), "job", 30s, 60s));
    wait_for_waiters(holder, "job", i + 1);
  }
  ASSERT_TRUE(lease->release());
  std::int64_t last = 0;
  for (Worker& waiter : waiters) {
    EXPECT_EQ(waiter.line(), "asking");
    const std::int64_t token = token_in(waiter.line());
    ASSERT_TRUE(status(holder, "job").holder());
    if (fenced()) {
      EXPECT_GT(token, last);
      EXPECT_EQ(status(holder, "job").holder()->token.value(), token);
    }
    last = token;
    waiter.tell("release");
    EXPECT_EQ(waiter.line(), "released");
  }
}

TEST_P(StoreConformance, WaiterThatAsksAgainWaitsForThoseBeforeIt) {
  RawStore holder(store->open());
  RawStore waiters(store->open());
  const RequestId held = new_request();
  const RequestId next = new_request();
  const RequestId last = new_request();
  ASSERT_TRUE(std::holds_alternative<Granted>(holder.acquire(held).value()));
  const auto is_granted = [&](const RequestId& request) {
    return std::holds_alternative<Granted>(waiters.acquire(request, 30s, true).value());
  };
  // A nudge may come for nothing, and a waiter also asks unasked: so nobody gets the lock by it.
  for (int times = 0; times < 3; ++times) {
    EXPECT_FALSE(is_granted(next)) << "while another holds the lock";
    EXPECT_FALSE(is_granted(last)) << "while another holds the lock";
  }
  EXPECT_EQ(holder.release(held), ReleaseReply::released);
  if (holder.traits().queues) {
    EXPECT_FALSE(is_granted(last)) << "while another waits before it";
  }
  while (!is_granted(next)) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(is_granted(last)) << "while the other waiter holds the lock";
}

TEST_P(StoreConformance, ReleaseWakesOneOfAHundredWaiters) {
  RawStore holder(store->open_patient());
  if (!holder.traits().queues) return;  // nothing promised
  RawStore waiters(store->open_patient());
  const RequestId held = new_request();
  ASSERT_TRUE(holder.acquire(held));
  const RequestId first = new_request();
  const auto ask = [&](const RequestId& it) { return waiters.acquire(it, 30s, true).value(); };
  const auto await_queue = [&](std::size_t length) {
    while (holder.inspect()->waiters.size() != length) std::this_thread::sleep_for(1ms);
  };
  ASSERT_TRUE(std::holds_alternative<Queued>(ask(first)));
  await_queue(1);
  for (int i = 1; i < 100; ++i) ASSERT_TRUE(std::holds_alternative<Queued>(ask(new_request())));
  await_queue(100);
  EXPECT_EQ(waiters.events.nudges(), 0u);
  EXPECT_EQ(holder.release(held), ReleaseReply::released);
  ASSERT_TRUE(waiters.events.wait_for_nudge(first, 30s));
  ASSERT_TRUE(std::holds_alternative<Granted>(ask(first)));
  EXPECT_EQ(waiters.events.nudges(), 1u);
  const RequestId second = holder.inspect()->waiters.front().request;
  EXPECT_EQ(waiters.release(first), ReleaseReply::released);
  ASSERT_TRUE(waiters.events.wait_for_nudge(second, 30s));
  EXPECT_EQ(waiters.events.nudges(), 2u);
}

TEST_P(StoreConformance, NewcomerDoesNotOvertakeAWaiter) {
  Client holder = client();
  if (!holder.store().queues) return;  // nothing promised
  auto lease = holder.acquire("job");
  ASSERT_TRUE(lease);
  Worker waiter = Worker::hold(store->url(), "job", 30s, 60s);
  wait_for_waiters(holder, "job", 1);
  waiter.freeze();  // it is next, but slow
  ASSERT_TRUE(lease->release());
  EXPECT_EQ(holder.acquire("job").error().code, ErrorCode::busy);
  waiter.thaw();
  EXPECT_EQ(waiter.line(), "asking");
  EXPECT_THAT(waiter.line(), StartsWith("held"));
}

TEST_P(StoreConformance, WaitEndsWithTimeoutAndLeavesTheQueue) {
  Client one = client();
  auto lease = one.acquire("job");
  ASSERT_TRUE(lease);
  const auto late = one.acquire("job", {.wait = 50ms});
  EXPECT_EQ(late.error().code, ErrorCode::timeout);
  wait_for_waiters(one, "job", 0);
  ASSERT_TRUE(lease->release());
  // Without a queue its last try may just be taking votes that it will give back.
  EXPECT_TRUE(one.acquire("job", {.wait = one.store().queues ? 0s : 10s}));
}

TEST_P(StoreConformance, WaitCanBeCancelled) {
  Client one = client();
  auto lease = one.acquire("job");
  ASSERT_TRUE(lease);
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] {
    return one.acquire("job", {.wait = 1h, .stop = stop.get_token()});
  });
  if (one.store().queues) wait_for_waiters(one, "job", 1);
  stop.request_stop();
  EXPECT_EQ(waiting.get().error().code, ErrorCode::cancelled);
  wait_for_waiters(one, "job", 0);
}

TEST_P(StoreConformance, DeadWaiterDoesNotBlockThoseBehindIt) {
  Client holder = client();
  auto lease = holder.acquire("job");
  ASSERT_TRUE(lease);
  Worker dead = Worker::hold(store->url(), "job", 30s, 60s);
  if (holder.store().queues) wait_for_waiters(holder, "job", 1);
  auto behind =
      std::async(std::launch::async, [&] { return holder.acquire("job", {.wait = 12s}); });
  if (holder.store().queues) wait_for_waiters(holder, "job", 2);
  dead.kill();
  ASSERT_TRUE(lease->release());
  const auto got = behind.get();
  EXPECT_TRUE(got) << to_string(got.error());
}

TEST_P(StoreConformance, FrozenWaiterIsPassedOver) {
  Client holder = client();
  auto lease = holder.acquire("job");
  ASSERT_TRUE(lease);
  Worker frozen = Worker::hold(store->url(), "job", 1s, 60s);
  if (holder.store().queues) wait_for_waiters(holder, "job", 1);
  frozen.freeze();
  auto behind =
      std::async(std::launch::async, [&] { return holder.acquire("job", {.wait = 30s}); });
  if (holder.store().queues) wait_for_waiters(holder, "job", 2);
  ASSERT_TRUE(lease->release());
  auto got = behind.get();
  ASSERT_TRUE(got) << to_string(got.error());
  frozen.thaw();
  EXPECT_EQ(got->release().value(), ReleaseOutcome::released);
  EXPECT_EQ(frozen.line(), "asking");
  EXPECT_THAT(frozen.line(), StartsWith("held")) << "it still wants the lock, and gets it";
}

// ---- expiry, renewal, loss -----------------------------------------------------------------

TEST_P(StoreConformance, DeadHoldersLockIsFreeAfterItsTtl) {
  Worker holder = Worker::hold(store->url(), "job", 1s);
  EXPECT_EQ(holder.line(), "asking");
  const std::int64_t first = token_in(holder.line());
  holder.kill();
  Client successor = client();
  auto next = take(successor, "job", {.wait = 30s});
  ASSERT_TRUE(next) << to_string(next.error());
  expect_larger(next->number(), first);
}

TEST_P(StoreConformance, FrozenHolderLosesTheLockAndIsTold) {
  Worker holder = Worker::hold(store->url(), "job", 1s);
  EXPECT_EQ(holder.line(), "asking");
  const std::int64_t first = token_in(holder.line());
  holder.freeze();
  Client successor = client();
  auto next = take(successor, "job", {.wait = 30s});
  ASSERT_TRUE(next) << to_string(next.error());
  expect_larger(next->number(), first);
  holder.thaw();
  EXPECT_EQ(holder.line(), "lost");
  holder.tell("state");
  EXPECT_EQ(holder.line(), "lost");
  holder.tell("release");
  EXPECT_EQ(holder.line(), "too_late");
  EXPECT_EQ(holder.wait(), 0);
  EXPECT_EQ(status(successor, "job").holder()->request, next->lease.request())
      << "the late release did not touch the successor";
}

TEST_P(StoreConformance, RenewedLeaseOutlivesItsTtlManyTimes) {
  const auto faults = std::make_shared<Faults>();
  Client one = faulty_client(faults);
  Client other = client();
  auto lease = one.acquire("job", {.ttl = 2s});
  ASSERT_TRUE(lease);
  const RequestId request = lease->request();
  for (int round = 1; round <= 4; ++round) {
    faults->wait_for_calls(Operation::renew, 2 * round);
    EXPECT_EQ(other.acquire("job").error().code, ErrorCode::busy);
    EXPECT_EQ(status(other, "job").holder()->request, request);
  }
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
}

TEST_P(StoreConformance, HoldersDeadlineIsBeforeTheStores) {
  Client one = client();
  auto lease = one.acquire("job", {.ttl = 10s});
  ASSERT_TRUE(lease);
  const auto seen = status(one, "job");
  EXPECT_LT(lease->deadline(), BootClock::now() + seen.holder()->remaining);
}

TEST_P(StoreConformance, LossIsToldAndReleaseAfterItIsTooLate) {
  const auto faults = std::make_shared<Faults>();
  Client one = faulty_client(faults);
  auto lease = one.acquire("job", {.ttl = 1s});
  ASSERT_TRUE(lease);
  faults->always(Operation::renew, Fault::refuse);
  wait_for(lease->lost());
  EXPECT_EQ(lease->state(), LeaseState::lost);
  EXPECT_EQ(lease->require().error().code, ErrorCode::lost);
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::too_late);
  EXPECT_TRUE(client().acquire("job", {.wait = 30s}));
}

// ---- request ids ---------------------------------------------------------------------------

TEST_P(StoreConformance, SameRequestIdGetsTheSameGrant) {
  RawStore raw(store->open());
  const RequestId request = new_request();
  const auto first = raw.token(request);
  EXPECT_EQ(raw.token(request), first);
  EXPECT_TRUE(std::holds_alternative<Busy>(raw.acquire(new_request()).value()));
}

TEST_P(StoreConformance, AcquireDoesNotRenew) {
  RawStore raw(store->open());
  Client observer = client();
  const RequestId request = new_request();
  const std::int64_t token = raw.token(request);
  if (status(observer, "job").holder()->at_most) {  // then only the end of the grant shows it
    const auto is_the_same = [&] {
      const auto reply = raw.acquire(request);
      const auto* granted = reply ? std::get_if<Granted>(&*reply) : nullptr;
      return !granted || granted->token.value() == token;
    };
    while (is_the_same()) std::this_thread::sleep_for(1ms);
    return;
  }
  const Millis first = status(observer, "job").holder()->remaining;
  while (status(observer, "job").holder()->remaining >= first) std::this_thread::sleep_for(1ms);
  const Millis before = status(observer, "job").holder()->remaining;
  ASSERT_TRUE(raw.acquire(request));
  EXPECT_LE(status(observer, "job").holder()->remaining, before);
}

TEST_P(StoreConformance, ReleaseAndRenewTouchOnlyTheirOwn) {
  RawStore raw(store->open());
  Client observer = client();
  const RequestId mine = new_request();
  const RequestId other = new_request();
  ASSERT_TRUE(raw.acquire(mine));
  EXPECT_EQ(raw.release(other), ReleaseReply::not_held);
  EXPECT_EQ(raw.renew(other), RenewReply::gone);
  EXPECT_EQ(status(observer, "job").holder()->request, mine);
  EXPECT_EQ(raw.renew(mine), RenewReply::renewed);
  EXPECT_EQ(raw.release(mine), ReleaseReply::released);
  EXPECT_EQ(raw.renew(mine), RenewReply::gone) << "renew never acquires";
  EXPECT_FALSE(status(observer, "job").holder());
}

TEST_P(StoreConformance, OldGrantTouchesNothingAfterASuccessorCame) {
  RawStore raw(store->open());
  Client observer = client();
  const RequestId old = new_request();
  const auto first = raw.token(old);
  EXPECT_EQ(raw.release(old), ReleaseReply::released);
  const RequestId next = new_request();
  expect_larger(raw.token(next), first);
  raw.release(old);
  EXPECT_EQ(raw.renew(old), RenewReply::gone);
  EXPECT_EQ(status(observer, "job").holder()->request, next);
}

TEST_P(StoreConformance, ExpiredGrantIsNeitherRenewedNorReleased) {
  RawStore raw(store->open());
  const RequestId request = new_request();
  ASSERT_TRUE(raw.acquire(request, 100ms));
  Client observer = client();
  while (status(observer, "job").holder()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(raw.renew(request), RenewReply::gone);
  EXPECT_EQ(raw.release(request), ReleaseReply::not_held);
}

TEST_P(StoreConformance, StatusTellsHowFarTokensWereCounted) {
  RawStore raw(store->open());
  Client observer = client();
  const bool has_tokens = fenced();
  for (int turn = 0; turn < 3; ++turn) {
    const auto before = status(observer, "job").counted_to;
    const RequestId request = new_request();
    const std::int64_t token = raw.token(request);
    EXPECT_GT(token, before.value_or(0)) << "every later one is above";
    const auto held = status(observer, "job").counted_to;
    ASSERT_EQ(held.has_value(), has_tokens);
    EXPECT_GE(held.value_or(token), token);
    const RequestId waiter = new_request();
    if (has_tokens && raw.traits().queues) {
      ASSERT_TRUE(raw.acquire(waiter, 30s, /*queue=*/true));
      const std::int64_t counted = status(observer, "job").counted_to.value();
      EXPECT_GE(counted, token);
      EXPECT_EQ(raw.release(request), ReleaseReply::released);
      auto next = raw.acquire(waiter, 30s, true);
      while (next && !std::holds_alternative<Granted>(*next)) next = raw.acquire(waiter, 30s, true);
      ASSERT_TRUE(next) << to_string(next.error());
      EXPECT_GT(std::get<Granted>(*next).token.value(), counted) << "that of who waits too";
      EXPECT_EQ(raw.release(waiter), ReleaseReply::released);
    } else {
      EXPECT_EQ(raw.release(request), ReleaseReply::released);
    }
    EXPECT_GE(status(observer, "job").counted_to.value_or(token), token);
  }
}

TEST_P(StoreConformance, TokensOfOneCounterRiseFromLockToLock) {
  RawStore one(store->open(), "one");
  RawStore two(store->open(), "two");
  if (!one.traits().one_counter) return;  // nothing promised
  std::int64_t last = 0;
  for (int turn = 0; turn < 10; ++turn) {
    RawStore& asking = turn % 2 == 0 ? one : two;
    const RequestId request = new_request();
    const std::int64_t token = asking.token(request);
    EXPECT_GT(token, last);
    last = token;
    EXPECT_EQ(asking.release(request), ReleaseReply::released);
  }
}

// ---- lost replies --------------------------------------------------------------------------

TEST_P(StoreConformance, AcquireWhoseReplyWasLostIsOneGrant) {
  const auto faults = std::make_shared<Faults>();
  Client one = faulty_client(faults);
  Client observer = client();
  faults->next(Operation::acquire, Fault::lose_reply, 2);
  auto held = take(one, "job");
  ASSERT_TRUE(held) << to_string(held.error());
  EXPECT_EQ(faults->calls(Operation::acquire), 3);
  EXPECT_EQ(status(observer, "job").holder()->request, held->lease.request());
  if (held->token) {
    EXPECT_EQ(status(observer, "job").last_token, held->token->number) << "granted once";
  }
  EXPECT_EQ(held->lease.release().value(), ReleaseOutcome::released);
}

TEST_P(StoreConformance, AcquireWhoseRequestWasLostIsRetried) {
  const auto faults = std::make_shared<Faults>();
  Client one = faulty_client(faults);
  faults->next(Operation::acquire, Fault::lose_request, 2);
  EXPECT_TRUE(one.acquire("job"));
}

TEST_P(StoreConformance, WaiterWhoseReplyWasLostKeepsItsPlace) {
  const auto faults = std::make_shared<Faults>();
  Client one = client();
  auto lease = one.acquire("job");
  ASSERT_TRUE(lease);
  Client two = faulty_client(faults);
  faults->next(Operation::acquire, Fault::lose_reply);
  auto waiting = std::async(std::launch::async, [&] { return two.acquire("job", {.wait = 60s}); });
  faults->wait_for_calls(Operation::acquire, 2);
  if (one.store().queues) wait_for_waiters(one, "job", 1);
  faults->next(Operation::acquire, Fault::lose_reply);  // and again when it is its turn
  ASSERT_TRUE(lease->release());
  const auto got = waiting.get();
  ASSERT_TRUE(got) << to_string(got.error());
  EXPECT_EQ(status(one, "job").holder()->request, got->request());
}

TEST_P(StoreConformance, AbandonedAcquireIsGivenBackInTheBackground) {
  const auto faults = std::make_shared<Faults>();
  Client one = faulty_client(faults);
  faults->always(Operation::acquire, Fault::lose_reply);
  const auto lost = one.acquire("job", {.ttl = 24h, .store_timeout = 500ms});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::outcome_unknown);
  const auto next = client().acquire("job", {.wait = 30s});
  EXPECT_TRUE(next) << to_string(next.error());
}

TEST_P(StoreConformance, RenewalWhoseReplyWasLostKeepsTheLease) {
  const auto faults = std::make_shared<Faults>();
  Client one = faulty_client(faults);
  auto lease = one.acquire("job", {.ttl = 3s});
  ASSERT_TRUE(lease);
  faults->next(Operation::renew, Fault::lose_reply, 2);
  faults->wait_for_calls(Operation::renew, 4);
  EXPECT_NE(lease->state(), LeaseState::lost);
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
}

TEST_P(StoreConformance, ReleaseWhoseReplyWasLostFreesTheLockOnce) {
  const auto faults = std::make_shared<Faults>();
  Client one = faulty_client(faults);
  auto lease = one.acquire("job", {.ttl = 24h});
  ASSERT_TRUE(lease);
  faults->next(Operation::release, Fault::lose_reply);
  const auto outcome = lease->release();
  // A store that remembers who released says so; another can only say that it does not know.
  const bool honest = outcome ? *outcome == ReleaseOutcome::released
                              : outcome.error().code == ErrorCode::outcome_unknown;
  EXPECT_TRUE(honest);
  EXPECT_TRUE(client().acquire("job", {.wait = 30s}));
}

TEST_P(StoreConformance, ReleaseWhoseRequestWasLostIsRetried) {
  const auto faults = std::make_shared<Faults>();
  Client one = faulty_client(faults);
  auto lease = one.acquire("job", {.ttl = 24h});
  ASSERT_TRUE(lease);
  faults->next(Operation::release, Fault::lose_request);
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
  EXPECT_TRUE(client().acquire("job"));
}

TEST_P(StoreConformance, ForceReleaseWhoseReplyWasLostIsSafeToRepeat) {
  const auto faults = std::make_shared<Faults>();
  Client operator_client = faulty_client(faults);
  Client one = client();
  auto first = one.acquire("job", {.ttl = 24h});
  ASSERT_TRUE(first);
  faults->next(Operation::force_release, Fault::lose_reply);
  EXPECT_EQ(operator_client.force_release(lock_name("job"), first->request()).error().code,
            ErrorCode::outcome_unknown);
  auto second = one.acquire("job", {.ttl = 24h});
  ASSERT_TRUE(second);
  EXPECT_EQ(operator_client.force_release(lock_name("job"), first->request()).value(),
            ReleaseReply::not_held);
  EXPECT_EQ(status(one, "job").holder()->request, second->request()) << "not the successor";
}

// ---- the limits of a call ------------------------------------------------------------------

namespace {

// Every call that blocks, with its limit and its stop token.
struct BlockingCalls {
  explicit BlockingCalls(StoreUnderTest& store) : client(store.open_slow()) {
    {
      // As many connections as there will be calls: connecting is not what is looked at.
      store.answer_after(100ms);
      std::vector<std::jthread> threads;
      for (int i = 0; i < 14; ++i) {
        threads.emplace_back([this] { EXPECT_TRUE(client.inspect(lock_name("held"))); });
      }
    }
    for (const char* lock : {"held", "recorded", "forced", "released", "kept"}) {
      auto lease = client.acquire(lock, {.ttl = 1h});
      EXPECT_TRUE(lease) << lock;
      leases.emplace(lock, std::move(*lease));
    }
  }

  // Makes all of them at once; calls `ended` with the name and the end of each, from any thread.
  template <class Ended>
  void make(Millis limit, const std::stop_token& stop, Ended ended) {
    const CallOptions options{limit, stop};
    const auto acquire = [&](const char* lock, Millis ttl, Millis wait) {
      return client.acquire(lock, {ttl, wait, limit - wait, stop});
    };
    const std::map<std::string, std::function<ErrorCode()>> calls = {
        {"acquire", [&] { return code(acquire("free", 1h, 0ms)); }},
        {"acquire, and confirm", [&] { return code(acquire("brief", limit, 0ms)); }},
        {"acquire, and wait", [&] { return code(acquire("held", 1h, limit / 10)); }},
        {"inspect", [&] { return code(client.inspect(lock_name("held"), options)); }},
        {"list", [&] { return code(client.list(options)); }},
        {"recall", [&] { return code(client.recall(lock_name("held"), "key", options)); }},
        {"record",
         [&] {
           return code(client.record(leases.at("recorded"), "key", {"", ""}, options));
         }},
        {"force_release",
         [&] {
           const RequestId seen = leases.at("forced").request();
           return code(client.force_release(lock_name("forced"), seen, options));
         }},
        {"list_keys", [&] { return code(client.recorded_keys(lock_name("held"), options)); }},
        {"forget", [&] { return code(client.forget(lock_name("held"), "key", options)); }},
        {"rotate_store_id", [&] { return code(client.rotate_store_id(options)); }},
        {"release", [&] { return code(leases.at("released").release(limit, stop)); }},
        {"release_after", [&] { return code(leases.at("kept").release_after(1s, limit, stop)); }},
    };
    std::vector<std::jthread> threads;
    for (const auto& entry : calls) {
      threads.emplace_back([&entry, &ended] {
        const ErrorCode told = entry.second();
        ended(entry.first, told, BootClock::now());
      });
    }
  }

  // `internal` for success, which no call fails with here.
  template <class Reply>
  static ErrorCode code(const Reply& reply) {
    return reply ? ErrorCode::internal : reply.error().code;
  }

  Client client;
  std::map<std::string, Lease> leases;
};

}  // namespace

TEST_P(StoreConformance, EveryCallEndsInItsTimeThoughEachAnswerTakesNearlyAllOfIt) {
  BlockingCalls calls(*store);
  constexpr Millis limit = 5s;
  store->answer_after(limit * 9 / 10);
  const BootTime began = BootClock::now();
  calls.make(limit, {}, [&](const std::string& name, ErrorCode told, BootTime end) {
    EXPECT_LT(end - began, limit * 17 / 10) << name << ": " << to_string(told) << ", two answers";
  });
  store->answer_after(0ms);
}

TEST_P(StoreConformance, EveryCallEndsWithItsStopToken) {
  BlockingCalls calls(*store);
  store->answer_after(1h);
  std::stop_source stop;
  std::jthread stopping([&] {
    std::this_thread::sleep_for(200ms);  // there is no event for "the call waits for its answer"
    stop.request_stop();
  });
  const BootTime began = BootClock::now();
  calls.make(1h, stop.get_token(), [&](const std::string& name, ErrorCode told, BootTime end) {
    EXPECT_LT(end - began, 1min) << name << ": " << to_string(told);
  });
  store->answer_after(0ms);
}

TEST_P(StoreConformance, ClosedStoreRefusesEveryCallAndNamesItsAddressOnce) {
  const auto closed = store->open();
  SeenEvents events;
  closed->start(events);
  const std::string address = closed->traits().address;
  closed->close();
  const CallContext context{BootClock::now() + 1h, {}};
  const LockName lock = lock_name("job");
  const Ttl ttl = Ttl::of(30s).value();
  std::map<std::string, std::promise<Error>> told;
  const auto tell = [&](const char* name) {
    return [&error = told[name]](const auto& reply) {  // a second time would throw
      error.set_value(reply ? Error(ErrorCode::internal, "it did it") : reply.error());
    };
  };
  closed->acquire({lock, new_request(), default_owner_label(), ttl}, context, tell("acquire"));
  closed->renew({{lock, new_request(), ttl}}, context, tell("renew"));
  closed->release({lock, new_request()}, context, tell("release"));
  closed->inspect(lock, context, tell("inspect"));
  closed->list(context, tell("list"));
  closed->force_release(lock, new_request(), context, tell("force_release"));
  closed->rotate_store_id(context, tell("rotate_store_id"));
  if (OnceRecords* records = closed->once_records()) {
    records->recall(lock, "key", context, tell("recall"));
    records->list_keys(lock, context, tell("list_keys"));
    records->forget(lock, "key", context, tell("forget"));
  }
  for (auto& [name, error] : told) {
    const Error refusal = error.get_future().get();
    EXPECT_EQ(refusal.code, ErrorCode::unavailable) << name << ": " << to_string(refusal);
    EXPECT_EQ(refusal.address, address) << name;
    EXPECT_THAT(refusal.message, ::testing::Not(HasSubstr("://"))) << name;
  }
}

// ---- force release -------------------------------------------------------------------------

TEST_P(StoreConformance, ForceReleaseTakesFromTheSeenHolderAndTellsIt) {
  Client one = client();
  Client operator_client = client();
  auto stuck = take(one, "job", {.ttl = 2s});
  ASSERT_TRUE(stuck);
  const auto seen = status(operator_client, "job").holder()->request;
  EXPECT_EQ(operator_client.force_release(lock_name("job"), seen).value(), ReleaseReply::released);
  auto next = take(operator_client, "job");
  ASSERT_TRUE(next);
  expect_larger(next->number(), stuck->number());
  wait_for(stuck->lease.lost());
  EXPECT_EQ(stuck->lease.release().value(), ReleaseOutcome::too_late);
  EXPECT_EQ(operator_client.force_release(lock_name("job"), seen).value(), ReleaseReply::not_held);
  EXPECT_EQ(next->lease.state(), LeaseState::held);
}

TEST_P(StoreConformance, ForceReleaseWakesTheNextWaiter) {
  Client one = client();
  auto stuck = one.acquire("job", {.ttl = 24h});
  ASSERT_TRUE(stuck);
  auto waiting =
      std::async(std::launch::async, [&] { return client().acquire("job", {.wait = 60s}); });
  if (one.store().queues) wait_for_waiters(one, "job", 1);
  ASSERT_TRUE(one.force_release(lock_name("job"), stuck->request()));
  EXPECT_TRUE(waiting.get());
}

// ---- tokens --------------------------------------------------------------------------------

TEST_P(StoreConformance, TokensAreGivenOrRefusedAsTheGuaranteeSays) {
  Client one = client();
  const auto lease = one.acquire_fenced("job");
  EXPECT_EQ(lease.has_value(), fenced());
  if (lease) return;
  EXPECT_EQ(lease.error().code, ErrorCode::unsafe_for_correctness);
  EXPECT_THAT(lease.error().message, HasSubstr(one.store().why));
}

TEST_P(StoreConformance, TokensIncreaseAcrossReleasesAndRestarts) {
  if (!fenced()) return;  // nothing promised
  std::int64_t last = 0;
  std::optional<StoreId> lineage;
  for (int life = 0; life < 3; ++life) {
    {
      Client one = client();
      for (int i = 0; i < 5; ++i) {
        // A store may wait out what it has forgotten in the crash.
        auto lease = one.acquire_fenced("job", {.ttl = 2s, .wait = 1min});
        ASSERT_TRUE(lease) << to_string(lease.error());
        EXPECT_GT(lease->token().number.value(), last);
        last = lease->token().number.value();
        if (lineage) {
          EXPECT_EQ(lease->token().lineage.store, *lineage);
        }
        lineage = lease->token().lineage.store;
        ASSERT_TRUE(lease->release());
      }
    }
    store->restart();
  }
}

TEST_P(StoreConformance, LeaseSurvivesARestartInsideItsTtl) {
  {
    RawStore raw(store->open());
    ASSERT_TRUE(raw.acquire(new_request()));
  }
  store->restart();
  EXPECT_EQ(client().acquire("job").error().code, ErrorCode::busy) << "honoured or waited out";
}

TEST_P(StoreConformance, RotatedLineageMarksAllLaterTokens) {
  Client one = client();
  const auto before = status(one, "job").store;
  const auto rotated = one.rotate_store_id();
  ASSERT_TRUE(rotated) << to_string(rotated.error());
  EXPECT_NE(*rotated, before);
  EXPECT_EQ(status(one, "job").store, *rotated);
  if (fenced()) {
    EXPECT_EQ(client().acquire_fenced("job")->token().lineage.store, *rotated);
  }
}

// ---- what else a lease can do --------------------------------------------------------------

TEST_P(StoreConformance, KeptLockStaysTakenWithoutItsHolder) {
  Client observer = client();
  if (!observer.store().keeps_after_release) return;  // nothing promised
  {
    Client one = client();
    auto lease = one.acquire("job", {.ttl = 24h});
    ASSERT_TRUE(lease);
    EXPECT_EQ(lease->release_after(2s).value(), ReleaseOutcome::released);
    EXPECT_EQ(lease->state(), LeaseState::lost);
  }
  const auto kept = status(observer, "job");
  ASSERT_TRUE(kept.holder());
  EXPECT_TRUE(kept.holder()->kept);
  EXPECT_EQ(kept.holder()->owner, default_owner_label().str());
  const Error busy = observer.acquire("job").error();
  EXPECT_EQ(busy.code, ErrorCode::busy);
  EXPECT_NE(busy.message.find(kept.holder()->owner + " (which has finished"), std::string::npos)
      << busy.message;
  EXPECT_TRUE(observer.acquire("job", {.wait = 30s})) << "and then it is free";
}

TEST_P(StoreConformance, OnceRecordsAreKeptPerLockAndKey) {
  Client one = client();
  auto lease = one.acquire("job");
  ASSERT_TRUE(lease);
  EXPECT_FALSE(one.recall(lock_name("job"), "2026-11-15").value());
  ASSERT_TRUE(one.record(*lease, "2026-11-15", {"cmd", "0"}));
  ASSERT_TRUE(one.record(*lease, "2026-11-15", {"cmd", "1"}));
  Client other = client();
  const auto again = other.recall(lock_name("job"), "2026-11-15").value();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->parameters, "cmd");
  EXPECT_EQ(again->result, "0") << "never overwritten";
  EXPECT_FALSE(other.recall(lock_name("another"), "2026-11-15").value());
}

TEST_P(StoreConformance, OnceRecordsKeepAnyBytes) {
  Client one = client();
  auto lease = one.acquire("job");
  ASSERT_TRUE(lease);
  ASSERT_TRUE(good(one.record(*lease, "bytes", {any_bytes(), any_bytes() + any_bytes()})));
  ASSERT_TRUE(good(one.record(*lease, "nothing", {"", ""})));
  Client other = client();
  const auto bytes = other.recall(lock_name("job"), "bytes").value();
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->parameters, any_bytes());
  EXPECT_EQ(bytes->result, any_bytes() + any_bytes());
  const auto nothing = other.recall(lock_name("job"), "nothing").value();
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->parameters + nothing->result, "");
}

TEST_P(StoreConformance, OnceKeyIsNeverCutShort) {
  Client one = client();
  auto lease = one.acquire("job");
  ASSERT_TRUE(lease);
  for (const std::string& key : {std::string("k\0ey", 4), std::string("k\xff"), std::string()}) {
    EXPECT_TRUE(bad(one.record(*lease, key, {"cmd", "0"}), ErrorCode::invalid)) << key;
    EXPECT_TRUE(bad(one.recall(lock_name("job"), key), ErrorCode::invalid)) << key;
  }
  EXPECT_FALSE(one.recall(lock_name("job"), "k").value());
}

TEST_P(StoreConformance, RecordedKeysAreListedAndForgotten) {
  Client one = client();
  EXPECT_THAT(one.recorded_keys(lock_name("job")).value(), IsEmpty());
  EXPECT_FALSE(one.forget(lock_name("job"), "a").value());
  for (const char* lock : {"job", "job/other"}) {
    auto lease = one.acquire(lock);
    ASSERT_TRUE(lease);
    for (const char* key : {"b", "a", "a/%2F \xc3\xa4", "c"}) {
      ASSERT_TRUE(one.record(*lease, key, {"cmd", lock}));
    }
  }
  EXPECT_THAT(one.recorded_keys(lock_name("job")).value(),
              ElementsAre("a", "a/%2F \xc3\xa4", "b", "c"));
  EXPECT_TRUE(one.forget(lock_name("job"), "a/%2F \xc3\xa4").value());
  EXPECT_TRUE(one.forget(lock_name("job"), "b").value());
  EXPECT_FALSE(one.forget(lock_name("job"), "b").value()) << "it was forgotten before";
  EXPECT_THAT(client().recorded_keys(lock_name("job")).value(), ElementsAre("a", "c"));
  EXPECT_FALSE(one.recall(lock_name("job"), "b").value());
  EXPECT_EQ(one.recall(lock_name("job/other"), "b").value()->result, "job/other");
  auto again = one.acquire("job");
  ASSERT_TRUE(one.record(*again, "b", {"cmd", "new"}));
  EXPECT_EQ(one.recall(lock_name("job"), "b").value()->result, "new");
}

TEST_P(StoreConformance, NothingIsRecordedWithoutTheLock) {
  Client one = client();
  auto lease = one.acquire("job");
  ASSERT_TRUE(lease);
  ASSERT_TRUE(one.force_release(lock_name("job"), lease->request()));
  EXPECT_EQ(one.record(*lease, "key", {"cmd", "0"}).error().code, ErrorCode::lost);
  EXPECT_FALSE(one.recall(lock_name("job"), "key").value());
}

TEST_P(StoreConformance, ListShowsEveryHeldLock) {
  Client one = client();
  auto held = take(one, "held");
  ASSERT_TRUE(held);
  ASSERT_TRUE(one.acquire("free")->release());
  auto locks = one.list().value();
  if (locks.size() == 2) {  // a store may forget a free lock, or remember its counter
    EXPECT_EQ(locks[0].lock.str(), "free");
    EXPECT_FALSE(locks[0].holder());
    locks.erase(locks.begin());
  }
  ASSERT_EQ(locks.size(), 1u);
  EXPECT_EQ(locks[0].lock.str(), "held");
  ASSERT_TRUE(locks[0].holder());
  EXPECT_EQ(locks[0].holder()->owner, default_owner_label().str());
  EXPECT_EQ(locks[0].holder()->request, held->lease.request());
}

TEST_P(StoreConformance, SweptLockIsForgottenAndCountsOn) {
  RawStore raw(store->open());
  std::vector<Mode> modes = {Mode::exclusive()};
  if (raw.traits().modes) modes = {Mode::exclusive(), Mode::shared(), Mode::permit_of(2)};
  RequestId old = new_request();
  std::int64_t last = 0;
  for (const Mode mode : modes) {
    SCOPED_TRACE(to_string(mode));
    const auto granted = raw.acquire_as(mode, old);
    ASSERT_TRUE(granted) << to_string(granted.error());
    const std::int64_t token = std::get<Granted>(*granted).token.value();
    expect_larger(token, last);
    last = token;
    EXPECT_EQ(raw.release(old), ReleaseReply::released);
    store->sweep("job");
    const auto listed = client().list();
    ASSERT_TRUE(listed) << to_string(listed.error());
    for (const LockStatus& seen : *listed) EXPECT_NE(seen.lock.str(), "job");
    EXPECT_EQ(raw.inspect()->last_token, std::nullopt);

    const RequestId next = new_request();
    const auto again = raw.acquire_as(mode, next);
    ASSERT_TRUE(again) << to_string(again.error());
    expect_larger(std::get<Granted>(*again).token.value(), last);
    last = std::get<Granted>(*again).token.value();
    EXPECT_EQ(raw.renew(old), RenewReply::gone);
    ASSERT_TRUE(raw.try_release(old));
    ASSERT_TRUE(raw.force_release(old));
    const auto holders = raw.inspect()->holders;
    ASSERT_EQ(holders.size(), 1u) << "an old request touched the new lock";
    EXPECT_EQ(holders[0].request, next);
    EXPECT_EQ(raw.release(next), ReleaseReply::released);
    old = new_request();
  }
}

TEST_P(StoreConformance, ForkedChildHoldsNothing) {
  Client one = client();
  auto lease = one.acquire("job");
  ASSERT_TRUE(lease);
  const pid_t child = fork();
  if (child == 0) {
    const bool holds = lease->state() != LeaseState::lost || lease->release().has_value();
    { const Lease dropped = std::move(*lease); }
    _exit(holds ? 1 : 0);
  }
  int status_of_child = 0;
  ASSERT_EQ(waitpid(child, &status_of_child, 0), child);
  EXPECT_EQ(status_of_child, 0);
  EXPECT_EQ(status(one, "job").holder()->request, lease->request());
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
}

TEST_P(StoreConformance, WrongNamesAndTtlsAreInvalid) {
  Client one = client();
  EXPECT_EQ(one.acquire("").error().code, ErrorCode::invalid);
  EXPECT_EQ(one.acquire(std::string(513, 'x')).error().code, ErrorCode::invalid);
  EXPECT_EQ(one.acquire("a\nb").error().code, ErrorCode::invalid);
  EXPECT_EQ(one.acquire("x", {.ttl = 99ms}).error().code, ErrorCode::invalid);
  EXPECT_EQ(one.acquire("x", {.ttl = 25h}).error().code, ErrorCode::invalid);
  EXPECT_TRUE(one.list()->empty()) << "nothing reached the store";
}

TEST_P(StoreConformance, HostileNamesAreJustNames) {
  Client one = client();
  const std::vector<std::string> names = {
      "'; DROP TABLE lock; --", "a/b/../c", "%2e%2e", "job*", "Überweisung/☕",
      std::string(512, 'x'),    "{tag}",    "a b",    "\\",   "\"",
  };
  for (const auto& hostile : names) {
    auto lease = one.acquire(hostile);
    ASSERT_TRUE(lease) << hostile;
    EXPECT_EQ(one.acquire(hostile).error().code, ErrorCode::busy);
    EXPECT_EQ(status(one, hostile).holder()->request, lease->request());
    EXPECT_TRUE(lease->release());
  }
}

}  // namespace leasehold::testing
