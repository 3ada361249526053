// Calls with a completion: told once, on a thread of their own, whatever happens.
#include "leasehold/async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <future>
#include <latch>
#include <list>

#include "testing/faulty_store.h"
#include "testing/memory_store.h"
#include "testing/results.h"
#include "testing/told.h"
#include "testing/virtual_time.h"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using namespace leasehold::testing;

std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

class AsyncTest : public ::testing::Test {
 protected:
  AsyncClient connect(ConnectOptions options = {}) {
    auto owned = std::make_unique<MemoryStore>();
    memory = owned.get();
    client.emplace(with_faults(std::move(owned), faults), std::move(options));
    return AsyncClient(*client);
  }
  // Until the store has no holder of it any more.
  bool becomes_free(std::string_view lock) {
    auto lease = client->acquire(lock, {.wait = 30s});
    return lease && lease->release().has_value();
  }

  std::shared_ptr<Faults> faults = std::make_shared<Faults>();
  MemoryStore* memory = nullptr;
  std::optional<Client> client;
};

// ---- what is told --------------------------------------------------------------------------

TEST_F(AsyncTest, GrantIsTold) {
  AsyncClient async = connect();
  Told<Lease> told;
  async.acquire("job", {.ttl = 900ms}, told);
  auto lease = told.get();
  ASSERT_TRUE(good(lease));
  faults->wait_for_calls(Operation::renew, 2);
  EXPECT_EQ(lease->state(), LeaseState::held);
  EXPECT_EQ(client->acquire("job").error().code, ErrorCode::busy);
  Told<ReleaseOutcome> released;
  async.release(std::move(*lease), {}, released);
  EXPECT_EQ(released.get().value(), ReleaseOutcome::released);
}

TEST_F(AsyncTest, TokenIsTold) {
  AsyncClient async = connect();
  Told<FencedLease> told;
  async.acquire_fenced("job", {}, told);
  EXPECT_EQ(told.get().value().token().number.value(), 1);
}

TEST_F(AsyncTest, WaiterIsToldWhenItIsGranted) {
  AsyncClient async = connect();
  auto holder = client->acquire("job");
  Told<Lease> told;
  async.acquire("job", {.wait = 1h}, told);
  faults->wait_for_calls(Operation::acquire, 3);
  EXPECT_FALSE(told.is_told());
  ASSERT_TRUE(holder->release());
  EXPECT_TRUE(good(told.get()));
}

TEST_F(AsyncTest, FailuresAreThoseOfTheCallsThatWait) {
  AsyncClient async = connect();
  const auto holder = client->acquire("job");
  const auto code_of = [&](std::string_view lock, AcquireOptions options) {
    Told<Lease> told;
    async.acquire(lock, std::move(options), told);
    return told.get().error().code;
  };
  EXPECT_EQ(code_of("job", {}), ErrorCode::busy);
  EXPECT_EQ(code_of("job", {.wait = 20ms}), ErrorCode::timeout);
  EXPECT_EQ(code_of("", {}), ErrorCode::invalid);
  EXPECT_EQ(code_of("x", {.ttl = 1ms}), ErrorCode::invalid);
  EXPECT_EQ(code_of("x", {.wait = -1s}), ErrorCode::invalid);
  EXPECT_EQ(code_of("x", {.store_timeout = 0s}), ErrorCode::invalid);
  EXPECT_EQ(code_of("x", {.mode = Mode::shared()}), ErrorCode::unsupported);
  faults->next(Operation::acquire, Fault::refuse);
  EXPECT_EQ(code_of("x", {}), ErrorCode::unavailable);
}

TEST_F(AsyncTest, EfficiencyStoreRefusesTokens) {
  const Client efficient(std::make_unique<MemoryStore>(Guarantee::efficiency));
  Told<FencedLease> told;
  AsyncClient(efficient).acquire_fenced("job", {}, told);
  EXPECT_TRUE(bad(told.get(), ErrorCode::unsafe_for_correctness));
}

TEST_F(AsyncTest, LostRepliesAreSortedOut) {
  AsyncClient async = connect();
  for (const Fault fault : {Fault::lose_reply, Fault::lose_request}) {
    faults->next(Operation::acquire, fault);
    Told<Lease> told;
    async.acquire("job", {}, told);
    auto lease = told.get();
    ASSERT_TRUE(good(lease));
    faults->next(Operation::release, fault);
    Told<ReleaseOutcome> released;
    async.release(std::move(*lease), {}, released);
    const auto outcome = released.get();
    if (fault == Fault::lose_request) {
      EXPECT_EQ(outcome.value(), ReleaseOutcome::released);
    } else {
      EXPECT_TRUE(bad(outcome, ErrorCode::outcome_unknown));
    }
    EXPECT_TRUE(becomes_free("job"));
  }
}

TEST_F(AsyncTest, SecondReleaseIsTooLate) {
  AsyncClient async = connect();
  auto lease = client->acquire("job");
  ASSERT_TRUE(lease->release());
  Told<ReleaseOutcome> told;
  async.release(std::move(*lease), {}, told);
  EXPECT_EQ(told.get().value(), ReleaseOutcome::too_late);
}

TEST_F(AsyncTest, WhatCannotBeKeptGoesOn) {
  AsyncClient async = connect();
  auto lease = client->acquire("job");
  Told<ReleaseOutcome> told;
  async.release_after(std::move(*lease), 1s, {}, told);
  EXPECT_TRUE(bad(told.get(), ErrorCode::unsupported));
  EXPECT_EQ(lease->state(), LeaseState::held);
}

TEST_F(AsyncTest, LeaseThatIsNotTakenIsReleased) {
  AsyncClient async = connect();
  std::promise<void> told;
  async.acquire("job", {.ttl = 1h}, [&](const Result<Lease>& lease) {
    EXPECT_TRUE(good(lease));
    told.set_value();
  });
  told.get_future().wait();
  EXPECT_TRUE(becomes_free("job"));
}

// ---- questions -----------------------------------------------------------------------------

TEST_F(AsyncTest, QuestionsFailAsThoseThatWait) {
  AsyncClient async = connect();
  const LockName lock = LockName::parse("x").value();
  const auto lease = client->acquire(lock);
  const auto code_of = []<class T>(Told<T> told) { return told.get().error().code; };
  const auto ask = [&]<class T>(std::type_identity<T>, auto begin) {
    Told<T> told;
    begin(told.completion());
    return code_of(std::move(told));
  };
  using Keys = std::vector<std::string>;
  const CallOptions wrong{.store_timeout = 0s};
  const ErrorCode none = ErrorCode::unsupported;
  EXPECT_EQ(ErrorCode::invalid, ask(std::type_identity<LockStatus>(), [&](auto done) {
              async.inspect(lock, wrong, std::move(done));
            }));
  EXPECT_EQ(ErrorCode::invalid, ask(std::type_identity<std::vector<LockStatus>>(),
                                    [&](auto done) { async.list(wrong, std::move(done)); }));
  EXPECT_EQ(none, ask(std::type_identity<ReleaseReply>(), [&](auto done) {
              async.force_release(lock, lease->request(), {}, std::move(done));
            }));
  EXPECT_EQ(none, ask(std::type_identity<void>(),
                      [&](auto done) { async.set_permits(lock, 3, {}, std::move(done)); }));
  EXPECT_EQ(ErrorCode::invalid, ask(std::type_identity<void>(), [&](auto done) {
              async.set_permits(lock, 0, {}, std::move(done));
            }));
  EXPECT_EQ(none, ask(std::type_identity<StoreId>(),
                      [&](auto done) { async.rotate_store_id({}, std::move(done)); }));
  EXPECT_EQ(none, ask(std::type_identity<std::optional<OnceRecord>>(),
                      [&](auto done) { async.recall(lock, "key", {}, std::move(done)); }));
  EXPECT_EQ(ErrorCode::invalid, ask(std::type_identity<bool>(), [&](auto done) {
              async.forget(lock, "", {}, std::move(done));
            }));
  EXPECT_EQ(none, ask(std::type_identity<void>(),
                      [&](auto done) { async.record(*lease, "key", {}, {}, std::move(done)); }));
  EXPECT_EQ(none, ask(std::type_identity<Keys>(),
                      [&](auto done) { async.recorded_keys(lock, {}, std::move(done)); }));
}

// Answers a question when it is told to, or closed.
class SlowAnswers final : public Store {
 public:
  explicit SlowAnswers(std::function<void()> on_question = [] {})
      : on_question_(std::move(on_question)) {}
  ~SlowAnswers() override { close(); }

  const StoreTraits& traits() const override { return traits_; }
  void start(StoreEvents&) override {}
  void close() override {
    {
      const MutexLock lock(mutex_);
      closed_ = true;
      changed_.notify_all();
    }
  }
  void acquire(AcquireCall, CallContext, Completion<AcquireReply> done) override {
    ++acquires;
    await_close();
    done(fail(ErrorCode::unavailable, "closed"));
  }
  void renew(std::vector<RenewCall>, CallContext, Completion<std::vector<RenewReply>>) override {}
  void release(ReleaseCall, CallContext, Completion<ReleaseReply> done) override {
    done(ReleaseReply::not_held);
  }
  void inspect(LockName, CallContext, Completion<LockStatus> done) override {
    on_question_();
    await_close();
    done(fail(ErrorCode::unavailable, "closed"));
  }
  void list(CallContext, Completion<std::vector<LockStatus>> done) override {
    acquires_before_list = acquires.load();
    done(std::vector<LockStatus>());
  }
  void force_release(LockName, RequestId, CallContext, Completion<ReleaseReply>) override {}
  void rotate_store_id(CallContext, Completion<StoreId>) override {
    throw std::runtime_error("broken");
  }

  std::atomic<int> acquires = 0;
  std::atomic<int> acquires_before_list = 0;

 private:
  void await_close() {
    const MutexLock lock(mutex_);
    changed_.wait(mutex_, [this]() LEASEHOLD_REQUIRES(mutex_) { return closed_; });
  }

  const std::function<void()> on_question_;
  StoreTraits traits_;
  Mutex mutex_;
  ConditionVariable changed_;
  bool closed_ LEASEHOLD_GUARDED_BY(mutex_) = false;
};

TEST_F(AsyncTest, QuestionsEndWithTheClient) {
  std::latch asked(4);  // as many as there are threads
  client.emplace(std::make_unique<SlowAnswers>([&] { asked.count_down(); }));
  std::list<Told<LockStatus>> told(10);
  for (auto& one : told) {
    AsyncClient(*client).inspect(LockName::parse("x").value(), {.store_timeout = 1h}, one);
  }
  asked.wait();
  client.reset();
  for (auto& one : told) {
    ASSERT_TRUE(one.is_told()) << "before the client is gone";
    const auto answer = one.get();
    EXPECT_TRUE(bad(answer, ErrorCode::unavailable) || bad(answer, ErrorCode::cancelled));
  }
}

TEST_F(AsyncTest, QuestionsDoNotStandBehindAcquires) {
  auto owned = std::make_unique<SlowAnswers>();
  SlowAnswers& store = *owned;
  client.emplace(std::move(owned));
  const AsyncClient async(*client);
  std::list<Told<Lease>> told(100);
  std::list<Told<std::vector<LockStatus>>> lists(1);
  for (auto& one : told) async.acquire("x", {.store_timeout = 1h}, one);
  while (store.acquires < 4) std::this_thread::yield();
  async.list({.store_timeout = 1h}, lists.front());
  store.close();
  (void)lists.front().get();
  EXPECT_LT(store.acquires_before_list, 20) << "of a hundred that had come before";
}

TEST_F(AsyncTest, QuestionsEndInTimeBehindCallsThatHang) {
  AsyncClient async = connect();
  faults->always(Operation::acquire, Fault::hang);
  std::list<Told<Lease>> acquires(4);  // as many as there are threads
  for (auto& one : acquires) async.acquire("other", {.store_timeout = 1h}, one);
  faults->wait_for_calls(Operation::acquire, 4);
  const LockName lock = LockName::parse("x").value();
  Told<LockStatus> late;
  async.inspect(lock, {.store_timeout = 1ms}, late);
  EXPECT_TRUE(bad(late.get(), ErrorCode::unavailable));
  std::stop_source stop;
  Told<LockStatus> stopped;
  async.inspect(lock, {.store_timeout = 1h, .stop = stop.get_token()}, stopped);
  stop.request_stop();
  EXPECT_TRUE(bad(stopped.get(), ErrorCode::cancelled));
  Told<LockStatus> patient;
  async.inspect(lock, {.store_timeout = 1h}, patient);
  faults->let_go();
  EXPECT_TRUE(good(patient.get()));
  EXPECT_EQ(faults->calls(Operation::inspect), 1);
}

// ---- threads -------------------------------------------------------------------------------

TEST_F(AsyncTest, SlowCompletionDelaysNothingButCompletions) {
  AsyncClient async = connect();
  auto kept = client->acquire("kept", {.ttl = 900ms});
  auto lost = client->acquire("lost", {.ttl = 900ms});
  std::promise<void> entered;
  std::promise<void> leave;
  async.acquire("slow", {}, [&](const Result<Lease>&) {
    entered.set_value();
    leave.get_future().wait();
  });
  entered.get_future().wait();
  Told<Lease> behind;
  async.acquire("behind", {.ttl = 900ms}, behind);
  std::promise<void> told;
  const std::stop_callback on_loss(lost->lost(), [&] { told.set_value(); });
  memory->end(lost->request());
  EXPECT_EQ(told.get_future().wait_for(20s), std::future_status::ready) << "the loss is not told";
  faults->wait_for_calls(Operation::renew, faults->calls(Operation::renew) + 6);
  EXPECT_EQ(kept->state(), LeaseState::held);
  EXPECT_TRUE(bad(client->acquire("behind"), ErrorCode::busy)) << "it is granted, and not yet told";
  EXPECT_FALSE(behind.is_told());
  leave.set_value();
  EXPECT_EQ(behind.get()->state(), LeaseState::held);
}

TEST_F(AsyncTest, HangingAcquiresDelayNoRelease) {
  AsyncClient async = connect();
  auto dropped = client->acquire("dropped", {.ttl = 1h});
  auto released = client->acquire("released", {.ttl = 1h});
  faults->always(Operation::acquire, Fault::hang);
  std::list<Told<Lease>> told(10);
  for (auto& one : told) async.acquire("other", {.wait = 1h}, one);
  faults->wait_until_one_hangs();
  Told<ReleaseOutcome> outcome;
  async.release(std::move(*released), {}, outcome);
  EXPECT_EQ(outcome.get().value(), ReleaseOutcome::released);
  { const Lease gone = std::move(*dropped); }
  EXPECT_NO_THROW(faults->wait_for_calls(Operation::release, 2));
  faults->let_go();
}

TEST_F(AsyncTest, ThousandsWaitWithAFewThreads) {
  AsyncClient async = connect();
  const auto holder = client->acquire("job");
  std::list<Told<Lease>> told;
  std::stop_source stop;
  const auto wait = [&](int count) {
    for (int i = 0; i < count; ++i) {
      async.acquire("job", {.wait = 1h, .stop = stop.get_token()}, told.emplace_back());
    }
    faults->wait_for_calls(Operation::acquire, faults->calls(Operation::acquire) + 2 * count);
  };
  wait(100);
  const auto with_a_hundred = threads_of_this_process();
  wait(2000);
  EXPECT_EQ(threads_of_this_process(), with_a_hundred);
  stop.request_stop();
  for (auto& one : told) EXPECT_TRUE(bad(one.get(), ErrorCode::cancelled));
}

TEST_F(AsyncTest, CompletionsMayBeginCallsAndDropWhatTheyHave) {
  AsyncClient async = connect();
  std::promise<ReleaseOutcome> end;
  async.acquire("first", {}, [&, async](Result<Lease> first) {
    ASSERT_TRUE(good(first));
    async.acquire("second", {}, [&, async, first = std::move(first)](Result<Lease> second) mutable {
      ASSERT_TRUE(good(second));
      async.release(std::move(*first), {},
                    [&](const Result<ReleaseOutcome>& outcome) { end.set_value(*outcome); });
    });
  });
  EXPECT_EQ(end.get_future().get(), ReleaseOutcome::released);
  EXPECT_TRUE(becomes_free("first"));
  EXPECT_TRUE(becomes_free("second"));
}

TEST_F(AsyncTest, CompletionThatThrowsEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        std::promise<void> never;
        connect().acquire("job", {},
                          [](const Result<Lease>&) { throw std::runtime_error("oops"); });
        never.get_future().wait();
      },
      "oops");
}

// Queues whoever asks for "job", until it is granted; "slow" is asked for until it is closed.
class OneQueue final : public Store {
 public:
  const StoreTraits& traits() const override { return traits_; }
  void start(StoreEvents& events) override { events_ = &events; }
  void close() override { closed_.request_stop(); }
  void acquire(AcquireCall call, CallContext, Completion<AcquireReply> done) override {
    if (call.lock.str() == "slow") {
      ++slow;
      std::promise<void> closed;
      const std::stop_callback on_close(closed_.get_token(), [&] { closed.set_value(); });
      closed.get_future().wait();
      return done(fail(ErrorCode::unavailable, "closed"));
    }
    waiting_ = call.request;
    ++asked;
    if (!grants_) return done(Queued{1ms, "another"});
    done(Granted{TokenNumber::of(1).value(), StoreId::random(system_random()), call.ttl.length(),
                 /*fresh=*/true});
  }
  void renew(std::vector<RenewCall>, CallContext, Completion<std::vector<RenewReply>>) override {}
  void release(ReleaseCall, CallContext, Completion<ReleaseReply> done) override {
    done(ReleaseReply::released);
  }
  void grant() {
    grants_ = true;
    events_->nudged(*waiting_);
  }

  std::atomic<int> slow = 0;
  std::atomic<int> asked = 0;

 private:
  StoreTraits traits_{.queues = true};
  StoreEvents* events_ = nullptr;
  std::stop_source closed_;
  std::atomic<bool> grants_ = false;
  std::optional<RequestId> waiting_;  // is asked for by one at a time
};

TEST_F(AsyncTest, NudgedWaiterDoesNotStandInLine) {
  auto owned = std::make_unique<OneQueue>();
  OneQueue& store = *owned;
  client.emplace(std::move(owned));
  const AsyncClient async(*client);
  Told<Lease> told;
  async.acquire("job", {.wait = 20s}, told);
  while (store.asked == 0) std::this_thread::yield();
  std::list<Told<Lease>> slow(4);  // as many as there are threads
  for (auto& one : slow) async.acquire("slow", {.store_timeout = 1h}, one);
  while (store.slow < 4) std::this_thread::yield();
  // When the timer has ended this one, it has long sent the other into the line.
  Told<Lease> later;
  async.acquire("later", {.store_timeout = 50ms}, later);
  EXPECT_FALSE(good(later.get()));
  EXPECT_FALSE(told.is_told());
  store.grant();
  EXPECT_TRUE(good(told.get()));
}

// ---- stopping ------------------------------------------------------------------------------

TEST_F(AsyncTest, WaitingCanBeStopped) {
  AsyncClient async = connect();
  const auto holder = client->acquire("job");
  std::stop_source stop;
  Told<Lease> told;
  async.acquire("job", {.wait = 1h, .stop = stop.get_token()}, told);
  faults->wait_for_calls(Operation::acquire, 3);
  stop.request_stop();
  EXPECT_TRUE(bad(told.get(), ErrorCode::cancelled));
  Told<Lease> late;
  async.acquire("free", {.stop = stop.get_token()}, late);
  EXPECT_TRUE(bad(late.get(), ErrorCode::cancelled));
}

TEST_F(AsyncTest, ReleaseCanBeStoppedAndGoesOn) {
  AsyncClient async = connect();
  auto lease = client->acquire("job", {.ttl = 1h});
  faults->always(Operation::release, Fault::refuse);
  std::stop_source stop;
  Told<ReleaseOutcome> told;
  async.release(std::move(*lease), {.store_timeout = 1h, .stop = stop.get_token()}, told);
  faults->wait_for_calls(Operation::release, 1);
  stop.request_stop();
  EXPECT_TRUE(bad(told.get(), ErrorCode::cancelled));
  faults->never(Operation::release);
  EXPECT_TRUE(becomes_free("job"));
}

TEST_F(AsyncTest, StopThatComesBeforeTheEngineKnowsIsHeard) {
  faults->always(Operation::acquire, Fault::refuse);
  AsyncClient async = connect();
  for (int i = 0; i < 200; ++i) {
    std::stop_source stop;
    Told<Lease> told;
    std::jthread stopping([&] { stop.request_stop(); });
    async.acquire("job", {.wait = 20s, .stop = stop.get_token()}, told);
    ASSERT_TRUE(bad(told.get(), ErrorCode::cancelled));
  }
}

TEST_F(AsyncTest, WhatIsStoppedInLineIsNotSent) {
  AsyncClient async = connect();
  faults->always(Operation::acquire, Fault::hang);
  std::list<Told<Lease>> told(4);  // as many as there are threads
  for (auto& one : told) async.acquire("first", {.store_timeout = 1h}, one);
  faults->wait_for_calls(Operation::acquire, 4);
  std::stop_source stop;
  Told<Lease> stopped;
  async.acquire("stopped", {.store_timeout = 1h, .stop = stop.get_token()}, stopped);
  stop.request_stop();
  EXPECT_TRUE(bad(stopped.get(), ErrorCode::cancelled));
  faults->let_go();
  for (auto& one : told) (void)one.get();
  Told<Lease> last;  // comes after it in line
  async.acquire("last", {}, last);
  EXPECT_TRUE(good(last.get()));
  EXPECT_EQ(faults->calls(Operation::acquire), 5);
}

// ---- the end of the client -----------------------------------------------------------------

TEST_F(AsyncTest, WaitersEndWithTheClientAndHoldNothing) {
  faults->always(Operation::acquire, Fault::refuse);
  std::list<Told<Lease>> told(50);
  {
    AsyncClient async = connect();
    for (auto& one : told) async.acquire("job", {.wait = 1h}, one);
    faults->wait_for_calls(Operation::acquire, 100);
    client.reset();
  }
  for (auto& one : told) {
    ASSERT_TRUE(one.is_told()) << "before the client is gone";
    EXPECT_TRUE(bad(one.get(), ErrorCode::cancelled));
  }
}

TEST_F(AsyncTest, ClientMayGoWhileAGrantComes) {
  for (int i = 0; i < 100; ++i) {
    Told<Lease> told;
    {
      AsyncClient async = connect();
      faults->next(Operation::acquire, Fault::refuse);
      async.acquire("job", {.wait = 1h}, told);
      std::this_thread::sleep_for(std::chrono::microseconds(i * 120));
      client.reset();
    }
    const auto lease = told.get();
    EXPECT_TRUE(good(lease) || bad(lease, ErrorCode::cancelled));
  }
}

TEST_F(AsyncTest, LastHandleMayGoInACompletion) {
  std::list<Told<Lease>> behind(5);
  std::promise<void> begun;
  std::promise<void> go_on;
  std::promise<void> gone;
  AsyncClient async = connect();
  async.acquire("free", {}, [&, last = *client](Result<Lease> lease) mutable {
    begun.set_value();
    go_on.get_future().wait();
    lease = fail(ErrorCode::cancelled, "dropped");
    { const Client dropped = std::move(last); }
    for (const auto& one : behind) EXPECT_TRUE(one.is_told()) << "before the client is gone";
    gone.set_value();
  });
  begun.get_future().wait();
  faults->always(Operation::acquire, Fault::refuse);
  for (auto& one : behind) async.acquire("job", {.wait = 1h}, one);
  async = AsyncClient(Client(std::make_unique<MemoryStore>()));
  client.reset();
  go_on.set_value();
  gone.get_future().wait();
  for (auto& one : behind) EXPECT_TRUE(bad(one.get(), ErrorCode::cancelled));
}

TEST_F(AsyncTest, ReleaseKeepsTheClientUntilItIsAnswered) {
  Told<ReleaseOutcome> told;
  {
    AsyncClient async = connect();
    auto lease = client->acquire("job");
    faults->always(Operation::release, Fault::hang);
    async.release(std::move(*lease), {.store_timeout = 1h}, told);
    faults->wait_until_one_hangs();
    client.reset();
  }
  EXPECT_FALSE(told.is_told());
  faults->let_go();
  EXPECT_EQ(told.get().value(), ReleaseOutcome::released);
}

TEST_F(AsyncTest, ForkedChildIsToldAtOnce) {
  AsyncClient async = connect();
  auto lease = client->acquire("job");
  Told<Lease> pending;
  async.acquire("job", {.wait = 1h}, pending);
  faults->wait_for_calls(Operation::acquire, 2);
  const pid_t child = fork();
  if (child == 0) {
    int right = 0;
    async.acquire("x", {}, [&](const Result<Lease>& it) { right += bad(it, ErrorCode::invalid); });
    async.list({}, [&](const auto& it) { right += bad(it, ErrorCode::invalid); });
    async.release(std::move(*lease), {},
                  [&](const auto& it) { right += bad(it, ErrorCode::lost); });
    _exit(right);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_FALSE(pending.is_told());
  ASSERT_TRUE(lease->release());
  EXPECT_TRUE(good(pending.get()));
}

// ---- stores that break their word ----------------------------------------------------------

TEST_F(AsyncTest, QuestionThatTheStoreForgetsIsToldAllTheSame) {
  const Client slow(std::make_unique<SlowAnswers>());
  Told<ReleaseReply> told;
  AsyncClient(slow).force_release(LockName::parse("x").value(), RequestId::random(system_random()),
                                  {}, told);
  EXPECT_TRUE(bad(told.get(), ErrorCode::cancelled));
}

TEST_F(AsyncTest, StoreThatThrowsIsAnUnknownOutcome) {
  const Client slow(std::make_unique<SlowAnswers>());
  Told<StoreId> told;
  AsyncClient(slow).rotate_store_id({}, told);
  EXPECT_TRUE(bad(told.get(), ErrorCode::outcome_unknown));
}

}  // namespace
}  // namespace leasehold
