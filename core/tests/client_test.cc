// The driver: threads, clocks, destructors and forks around the engine.
#include "leasehold/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <future>
#include <type_traits>

#include "testing/faulty_store.h"
#include "testing/memory_store.h"
#include "testing/virtual_time.h"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using namespace leasehold::testing;
using ::testing::HasSubstr;

static_assert(!std::is_constructible_v<Lease, FencedLease>, "a token must not get lost unseen");
static_assert(!std::is_assignable_v<Lease&, FencedLease>);
static_assert(std::is_nothrow_move_constructible_v<FencedLease>);
static_assert(std::is_nothrow_move_assignable_v<FencedLease>);

class ClientTest : public ::testing::Test {
 protected:
  Client connect(ConnectOptions options = {}) {
    auto owned = std::make_unique<MemoryStore>();
    memory = owned.get();
    return Client(with_faults(std::move(owned), faults), std::move(options));
  }

  static void wait_for(const std::stop_token& stop) {
    std::promise<void> told;
    const std::stop_callback callback(stop, [&] { told.set_value(); });
    EXPECT_EQ(told.get_future().wait_for(30s), std::future_status::ready) << "it was not told";
  }

  std::shared_ptr<Faults> faults = std::make_shared<Faults>();
  MemoryStore* memory = nullptr;
};

TEST_F(ClientTest, LeaseIsRenewedInTheBackground) {
  Client client = connect();
  auto lease = client.acquire("job", {.ttl = 900ms});
  ASSERT_TRUE(lease);
  faults->wait_for_calls(Operation::renew, 6);
  EXPECT_EQ(lease->state(), LeaseState::held);
  EXPECT_TRUE(lease->require());
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
}

TEST_F(ClientTest, LossIsToldAlthoughAStoreCallHangs) {
  faults->always(Operation::renew, Fault::hang);
  Client client = connect();
  auto lease = client.acquire("job", {.ttl = 200ms});
  ASSERT_TRUE(lease);
  faults->wait_until_one_hangs();
  wait_for(lease->lost());
  EXPECT_EQ(lease->state(), LeaseState::lost);
  EXPECT_EQ(lease->remaining(), 0ns);
  EXPECT_EQ(lease->require().error().code, ErrorCode::lost);
  faults->let_go();
}

TEST_F(ClientTest, CallerDoesNotWaitForTheWithdrawalOfWhatItGaveUp) {
  faults->always(Operation::acquire, Fault::lose_reply);
  faults->always(Operation::release, Fault::hang);
  Client client = connect();
  const auto given_up = client.acquire("job", {.store_timeout = 50ms});  // and it returns
  ASSERT_FALSE(given_up);
  EXPECT_EQ(given_up.error().code, ErrorCode::outcome_unknown);
  EXPECT_EQ(given_up.error().address, client.store().address);
  faults->wait_until_one_hangs();
  faults->let_go();
}

TEST_F(ClientTest, HangingWithdrawalDelaysNoRenewal) {
  faults->always(Operation::release, Fault::hang);
  Client client = connect();
  auto lease = client.acquire("job", {.ttl = 900ms});
  ASSERT_TRUE(lease);
  { auto dropped = client.acquire("another"); }
  faults->wait_until_one_hangs();
  const int renewed = faults->calls(Operation::renew);
  faults->wait_for_calls(Operation::renew, renewed + 4);
  EXPECT_EQ(lease->state(), LeaseState::held);
  faults->let_go();
}

TEST_F(ClientTest, HangingRenewalOfALongLeaseDelaysNoShortOne) {
  for (const Millis ttl : {300ms, 600ms}) {  // of another lane, and of the same
    faults = std::make_shared<Faults>();
    Client client = connect();
    faults->next(Operation::renew, Fault::hang);
    auto slow = client.acquire("long", {.ttl = 1500ms});
    faults->wait_until_one_hangs();
    auto lease = client.acquire("short", {.ttl = ttl});
    ASSERT_TRUE(slow && lease);
    faults->wait_for_calls(Operation::renew, faults->calls(Operation::renew) + 4);
    EXPECT_EQ(lease->state(), LeaseState::held) << ttl.count();
    faults->let_go();
  }
}

TEST_F(ClientTest, HangingRetryDelaysNoWithdrawal) {
  Client client = connect();
  auto dropped = client.acquire("dropped");
  ASSERT_TRUE(dropped);
  faults->next(Operation::acquire, Fault::refuse);
  faults->next(Operation::acquire, Fault::hang);
  auto waiting =
      std::async(std::launch::async, [&] { return client.acquire("job", {.wait = 1min}); });
  faults->wait_until_one_hangs();
  { const Lease gone = std::move(*dropped); }
  EXPECT_NO_THROW(faults->wait_for_calls(Operation::release, 1));
  faults->let_go();
  EXPECT_TRUE(waiting.get());
}

TEST_F(ClientTest, HangingConfirmationDelaysNoRenewal) {
  Client client = connect();
  auto lease = client.acquire("held", {.ttl = 1500ms});
  ASSERT_TRUE(lease);
  faults->next(Operation::acquire, Fault::lose_reply);
  faults->next(Operation::renew, Fault::refuse);
  faults->next(Operation::renew, Fault::hang);
  auto confirmed =
      std::async(std::launch::async, [&] { return client.acquire("job", {.ttl = 900ms}); });
  faults->wait_until_one_hangs();
  faults->wait_for_calls(Operation::renew, faults->calls(Operation::renew) + 2);
  EXPECT_EQ(lease->state(), LeaseState::held);
  faults->let_go();
  EXPECT_TRUE(confirmed.get());
}

TEST_F(ClientTest, SlowLossCallbackDelaysNoRenewal) {
  Client client = connect();
  auto lost = client.acquire("a", {.ttl = 900ms});
  auto kept = client.acquire("b", {.ttl = 900ms});
  ASSERT_TRUE(lost && kept);
  std::promise<void> entered;
  std::promise<void> leave;
  const std::stop_callback slow(lost->lost(), [&] {
    entered.set_value();
    leave.get_future().wait();
  });
  memory->end(lost->request());
  entered.get_future().wait();
  faults->wait_for_calls(Operation::renew, faults->calls(Operation::renew) + 6);
  EXPECT_EQ(kept->state(), LeaseState::held);
  leave.set_value();
}

TEST_F(ClientTest, FailedRenewalsAreUncertainThenLost) {
  Client client = connect();
  auto lease = client.acquire("job", {.ttl = 600ms});
  ASSERT_TRUE(lease);
  faults->always(Operation::renew, Fault::refuse);
  faults->wait_for_calls(Operation::renew, 2);
  EXPECT_NE(lease->state(), LeaseState::held);
  wait_for(lease->lost());
  EXPECT_EQ(lease->state(), LeaseState::lost);
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::too_late);
}

TEST_F(ClientTest, StateIsLostInTheFirstInstantAfterAPause) {
  FakeClock clock(BootClock::now());
  Client client = connect({.owner = {}, .clock = &clock, .random = nullptr});
  auto lease = client.acquire("job", {.ttl = 30s});
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->state(), LeaseState::held);
  EXPECT_EQ(lease->require(60s).error().code, ErrorCode::lost) << "not enough left";
  clock.advance(31s);  // no thread of the client had a chance to run
  EXPECT_EQ(lease->state(), LeaseState::lost);
  EXPECT_EQ(lease->remaining(), 0ns);
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::too_late);
}

TEST_F(ClientTest, LossThatReleaseIsTheFirstToSeeIsToldAsAnyOther) {
  FakeClock clock(BootClock::now());
  Client client = connect({.owner = {}, .clock = &clock, .random = nullptr});
  auto lease = client.acquire("job", {.ttl = 30s});
  ASSERT_TRUE(lease);
  clock.advance(31s);
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::too_late);
  wait_for(lease->lost());
}

// Reads the time, and may then be long in telling it, as a thread that is taken off its processor.
class DelayedClock final : public Clock {
 public:
  BootTime now() const override {
    const BootTime stands_at = stands_at_.load();
    const BootTime read = stands_at == BootTime() ? BootClock::now() : stands_at;
    if (delayed_.exchange(false)) {
      reading_.set_value();
      go_on_.get_future().wait();
    }
    return read;
  }

  void delay_next_reader() { delayed_ = true; }
  void wait_for_reader() { reading_.get_future().wait(); }
  void let_go_on() { go_on_.set_value(); }
  void stand_at(BootTime when) { stands_at_ = when; }

 private:
  std::atomic<BootTime> stands_at_ = BootTime();
  mutable std::atomic<bool> delayed_ = false;
  mutable std::promise<void> reading_;
  mutable std::promise<void> go_on_;
};

TEST_F(ClientTest, LeaseThatWasSeenLostStaysLost) {
  for (const bool asks_for_the_rest : {false, true}) {
    faults = std::make_shared<Faults>();
    faults->next(Operation::renew, Fault::hang);
    DelayedClock clock;
    Client client = connect({.owner = {}, .clock = &clock, .random = nullptr});
    auto lease = client.acquire("job", {.ttl = 1500ms});
    ASSERT_TRUE(lease);
    faults->wait_until_one_hangs();
    clock.delay_next_reader();
    faults->let_go();
    clock.wait_for_reader();  // it is about to tell that the lease was renewed
    const BootTime deadline = lease->deadline();
    clock.stand_at(deadline);
    EXPECT_TRUE(asks_for_the_rest ? lease->remaining() == 0ns : lease->state() == LeaseState::lost);
    clock.let_go_on();
    (void)client.renewal_error();  // returns when the renewal has been told
    ASSERT_EQ(lease->state(), LeaseState::lost);
    EXPECT_EQ(lease->remaining(), 0ns);
    EXPECT_EQ(lease->deadline(), deadline);
    wait_for(lease->lost());
    EXPECT_EQ(lease->release().value(), ReleaseOutcome::too_late);
  }
}

TEST_F(ClientTest, LeaseThatIsNoLongerRenewedIsKeptAndThenLost) {
  Client client = connect();
  auto lease = client.acquire("job", {.ttl = 900ms});
  ASSERT_TRUE(lease);
  lease->stop_renewing();
  lease->stop_renewing();
  const BootTime deadline = lease->deadline();
  EXPECT_EQ(lease->state(), LeaseState::held);
  EXPECT_EQ(client.acquire("job").error().code, ErrorCode::busy) << "it was not released";
  wait_for(lease->lost());
  EXPECT_GE(BootClock::now(), deadline);
  EXPECT_EQ(lease->deadline(), deadline);
  EXPECT_EQ(faults->calls(Operation::renew), 0);
  EXPECT_EQ(faults->calls(Operation::release), 0);
  lease->resume_renewing();
  EXPECT_EQ(lease->state(), LeaseState::lost);
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::too_late);
}

TEST_F(ClientTest, LeaseThatIsNoLongerRenewedCanBeReleased) {
  Client client = connect();
  auto lease = client.acquire("job");
  ASSERT_TRUE(lease);
  lease->stop_renewing();
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
  lease->stop_renewing();
  lease->resume_renewing();
  auto next = client.acquire("job");
  ASSERT_TRUE(next);
  next->stop_renewing();
  next = fail(ErrorCode::cancelled, "gone");  // the destructor releases
  EXPECT_TRUE(client.acquire("job", {.wait = 10s}));
}

TEST_F(ClientTest, ResumedLeaseIsRenewedAgain) {
  Client client = connect();
  auto lease = client.acquire("job", {.ttl = 900ms});
  ASSERT_TRUE(lease);
  lease->stop_renewing();
  const BootTime before = lease->deadline();
  lease->resume_renewing();
  faults->wait_for_calls(Operation::renew, 4);
  EXPECT_GT(lease->deadline(), before);
  EXPECT_EQ(lease->state(), LeaseState::held);
}

TEST_F(ClientTest, RenewalThatStandsInLineIsNotSentAfterAStop) {
  faults->always(Operation::renew, Fault::hang);
  Client client = connect();
  std::vector<Lease> slow;  // as many as a lane has threads, each with a batch of its own
  for (const Millis ttl : {700ms, 710ms, 720ms, 730ms}) {
    slow.push_back(client.acquire(std::to_string(ttl.count()), {.ttl = ttl}).value());
  }
  auto lease = client.acquire("job", {.ttl = 1500ms});  // of the same lane
  ASSERT_TRUE(lease);
  const BootTime deadline = lease->deadline();
  wait_for(slow.back().lost());  // the renewal of "job" was due before that
  ASSERT_EQ(faults->calls(Operation::renew), 4) << "it stands in line";
  lease->stop_renewing();
  faults->let_go();
  auto other = client.acquire("beside", {.ttl = 450ms});
  ASSERT_TRUE(other);
  faults->wait_for_calls(Operation::renew, 8);
  EXPECT_EQ(lease->deadline(), deadline) << "it was sent after all";
}

TEST_F(ClientTest, ThreadsDoNotGrowWithLeases) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                         std::filesystem::directory_iterator());
  };
  Client client = connect();
  std::vector<Lease> leases;
  const auto take = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      auto lease = client.acquire("lock-" + std::to_string(i), {.ttl = 1s});
      ASSERT_TRUE(lease);
      leases.push_back(std::move(*lease));
    }
  };
  take(0, 10);
  faults->wait_for_calls(Operation::renew, 1);
  const auto with_ten = threads();
  take(10, 2000);
  faults->wait_for_calls(Operation::renew, faults->calls(Operation::renew) + 3);
  EXPECT_LE(threads(), with_ten + 3) << "of one lane";
}

TEST_F(ClientTest, DestructorReleases) {
  Client client = connect();
  { ASSERT_TRUE(client.acquire("job")); }
  EXPECT_TRUE(client.acquire("job", {.wait = 10s}));
}

TEST_F(ClientTest, AssignmentReleasesWhatWasHeld) {
  Client client = connect();
  auto lease = client.acquire("a");
  lease = client.acquire("b");
  ASSERT_TRUE(lease);
  EXPECT_TRUE(client.acquire("a", {.wait = 10s}));
  EXPECT_EQ(client.acquire("b").error().code, ErrorCode::busy);
}

TEST_F(ClientTest, ClientMayGoBeforeItsLeases) {
  auto client = std::make_unique<Client>(connect());
  auto lease = client->acquire("job", {.ttl = 900ms});
  ASSERT_TRUE(lease);
  client.reset();
  faults->wait_for_calls(Operation::renew, 4);
  EXPECT_EQ(lease->state(), LeaseState::held);
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
}

TEST_F(ClientTest, LastLeaseMayBeDestroyedInItsOwnLossCallback) {
  auto client = std::make_unique<Client>(connect());
  auto lease = std::make_unique<Lease>(client->acquire("job").value());
  MemoryStore* store = memory;
  client.reset();
  std::promise<void> gone;
  const std::stop_token lost = lease->lost();
  const RequestId request = lease->request();
  const std::stop_callback callback(lost, [&] {
    lease.reset();
    gone.set_value();
  });
  store->end(request);
  gone.get_future().wait();
}

TEST_F(ClientTest, SecondReleaseIsTooLate) {
  Client client = connect();
  auto lease = client.acquire("job");
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
  EXPECT_EQ(lease->state(), LeaseState::lost);
  EXPECT_FALSE(lease->lost().stop_requested()) << "a release is no loss";
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::too_late);
}

TEST_F(ClientTest, KeepingNeedsAStoreThatCan) {
  Client client = connect();
  auto lease = client.acquire("job");
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->release_after(1s).error().code, ErrorCode::unsupported);
  EXPECT_EQ(lease->state(), LeaseState::held) << "unchanged";
}

TEST_F(ClientTest, WaitingCanBeStopped) {
  Client client = connect();
  auto holder = client.acquire("job");
  ASSERT_TRUE(holder);
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] {
    return client.acquire("job", {.wait = 1h, .stop = stop.get_token()});
  });
  faults->wait_for_calls(Operation::acquire, 3);
  stop.request_stop();
  EXPECT_EQ(waiting.get().error().code, ErrorCode::cancelled);
  EXPECT_EQ(client.acquire("job", {.stop = stop.get_token()}).error().code, ErrorCode::cancelled);
}

// Its grants come so late that they are confirmed, and a confirmation takes until it is stopped.
class SlowGrants final : public Store {
 public:
  explicit SlowGrants(FakeClock& clock) : clock_(clock) {}

  const StoreTraits& traits() const override { return traits_; }
  void start(StoreEvents&) override {}
  void close() override {}
  void acquire(AcquireCall call, CallContext, Completion<AcquireReply> done) override {
    clock_.advance(call.ttl.length() * 3 / 4);
    done(Granted{TokenNumber::of(1).value(), StoreId::random(system_random()), call.ttl.length(),
                 /*fresh=*/true});
  }
  void renew(std::vector<RenewCall>, CallContext context,
             Completion<std::vector<RenewReply>> done) override {
    if (!told_.exchange(true)) confirms.set_value(context);
    std::promise<void> stopped;
    const std::stop_callback on_stop(context.stop, [&] { stopped.set_value(); });
    stopped.get_future().wait_for(2s);
    done(fail(ErrorCode::outcome_unknown, "no answer"));
  }
  void release(ReleaseCall, CallContext, Completion<ReleaseReply> done) override {
    done(ReleaseReply::released);
  }

  std::promise<CallContext> confirms;

 private:
  FakeClock& clock_;
  StoreTraits traits_;
  std::atomic<bool> told_ = false;
};

TEST_F(ClientTest, ConfirmationOfAGrantHearsTheStopTokenAndTheLimitOfItsCaller) {
  FakeClock clock(BootClock::now());
  const BootTime latest = clock.now() + 1h;
  auto owned = std::make_unique<SlowGrants>(clock);
  auto confirms = owned->confirms.get_future();
  Client client(std::move(owned), {.owner = {}, .clock = &clock, .random = nullptr});
  std::stop_source stop;
  auto acquired = std::async(std::launch::async, [&] {
    return client.acquire("job", {.ttl = 30s, .store_timeout = 1h, .stop = stop.get_token()});
  });
  const CallContext context = confirms.get();
  EXPECT_LE(context.deadline, latest);
  EXPECT_GT(context.deadline, latest - 1min);
  EXPECT_EQ(context.stop, stop.get_token());
  EXPECT_TRUE(context.urgent) << "as all that keeps a lease alive";
  stop.request_stop();
  EXPECT_EQ(acquired.get().error().code, ErrorCode::cancelled);
}

TEST_F(ClientTest, ReleaseCanBeStoppedAndGoesOnInTheBackground) {
  Client client = connect();
  auto lease = client.acquire("job", {.ttl = 1h});
  ASSERT_TRUE(lease);
  faults->always(Operation::release, Fault::refuse);
  std::stop_source stop;
  auto released =
      std::async(std::launch::async, [&] { return lease->release(1h, stop.get_token()); });
  faults->wait_for_calls(Operation::release, 1);
  stop.request_stop();
  EXPECT_EQ(released.get().error().code, ErrorCode::cancelled);
  faults->never(Operation::release);
  EXPECT_TRUE(client.acquire("job", {.wait = 30s})) << "long before its hour is over";
}

TEST_F(ClientTest, EfficiencyStoreRefusesTokensWithTheReason) {
  Client client(with_faults(std::make_unique<MemoryStore>(Guarantee::efficiency), faults));
  const auto lease = client.acquire_fenced("job");
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code, ErrorCode::unsafe_for_correctness);
  EXPECT_THAT(lease.error().message, HasSubstr("counter is lost"));
  EXPECT_THAT(lease.error().message, HasSubstr("Use a store that writes to disk"));
  EXPECT_EQ(faults->calls(Operation::acquire), 0);
  EXPECT_TRUE(client.acquire("job"));
}

TEST_F(ClientTest, TokenIsTheGrantsOwn) {
  Client client = connect();
  auto lease = client.acquire_fenced("job");
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->token().request, lease->request());
  EXPECT_EQ(lease->token().lineage.lock.str(), "job");
  EXPECT_EQ(lease->token().number.value(), 1);
}

TEST_F(ClientTest, WrongInputIsInvalidAndSendsNothing) {
  Client client = connect();
  EXPECT_EQ(client.acquire("").error().code, ErrorCode::invalid);
  EXPECT_EQ(client.acquire("x", {.ttl = 1ms}).error().code, ErrorCode::invalid);
  EXPECT_EQ(client.acquire("x", {.wait = -1s}).error().code, ErrorCode::invalid);
  EXPECT_EQ(client.acquire("x", {.store_timeout = 0s}).error().code, ErrorCode::invalid);
  EXPECT_EQ(faults->calls(Operation::acquire), 0);
  EXPECT_EQ(leasehold::connect("nonsense").error().code, ErrorCode::invalid);
  EXPECT_EQ(leasehold::connect("gopher://x").error().code, ErrorCode::unsupported);
}

TEST_F(ClientTest, ForEverIsATimeToo) {
  Client client = connect();
  auto lease = client.acquire("x", {.wait = Millis::max(), .store_timeout = Millis::max()});
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->require(Millis::max()).error().code, ErrorCode::lost) << "not so much is left";
  EXPECT_EQ(lease->release(Millis::max()).value(), ReleaseOutcome::released);
}

TEST_F(ClientTest, StoreWithoutACapabilitySaysSo) {
  Client client = connect();
  EXPECT_EQ(client.rotate_store_id().error().code, ErrorCode::unsupported);
  EXPECT_EQ(client.rotate_store_id().error().address, "memory:");
  EXPECT_EQ(client.recall(LockName::parse("x").value(), "key").error().code,
            ErrorCode::unsupported);
  EXPECT_EQ(client.recorded_keys(LockName::parse("x").value()).error().address, "memory:");
}

TEST_F(ClientTest, ForkedChildHoldsNothing) {
  Client client = connect();
  auto lease = client.acquire("job");
  ASSERT_TRUE(lease);
  const pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    wrong += lease->state() != LeaseState::lost;
    wrong += lease->require().has_value();
    wrong += lease->remaining() != 0ns;
    wrong += lease->release().has_value();
    wrong += client.acquire("other").error().code != ErrorCode::invalid;
    wrong += client.acquire_fenced("other").error().code != ErrorCode::invalid;
    wrong += client.renewal_error().value().code != ErrorCode::invalid;
    {
      const Lease dropped = std::move(*lease);
      const Client gone = std::move(client);
    }
    _exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(lease->state(), LeaseState::held);
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
}

TEST_F(ClientTest, StoreThatThrowsIsAnUnknownOutcome) {
  class ThrowingStore final : public Store {
   public:
    const StoreTraits& traits() const override { return traits_; }
    void start(StoreEvents&) override {}
    void close() override {}
    void acquire(AcquireCall, CallContext, Completion<AcquireReply>) override {
      throw std::runtime_error("broken");
    }
    void renew(std::vector<RenewCall>, CallContext, Completion<std::vector<RenewReply>>) override {}
    void release(ReleaseCall, CallContext, Completion<ReleaseReply> done) override {
      done(ReleaseReply::not_held);
    }

   private:
    StoreTraits traits_;
  };
  Client client(std::make_unique<ThrowingStore>());
  EXPECT_EQ(client.acquire("job", {.store_timeout = 50ms}).error().code,
            ErrorCode::outcome_unknown);
}

TEST_F(ClientTest, SecondAnswerToACallIsNobodys) {
  class RepeatingStore final : public Store {
   public:
    const StoreTraits& traits() const override { return traits_; }
    void start(StoreEvents&) override {}
    void close() override {}
    void acquire(AcquireCall call, CallContext, Completion<AcquireReply> done) override {
      if (answered_) {
        answered_(Granted{TokenNumber::of(1).value(), StoreId::random(system_random()),
                          call.ttl.length(), /*fresh=*/true});
      }
      done(Busy{"another"});
      answered_ = std::move(done);
    }
    void renew(std::vector<RenewCall>, CallContext, Completion<std::vector<RenewReply>>) override {}
    void release(ReleaseCall, CallContext, Completion<ReleaseReply>) override {}

   private:
    StoreTraits traits_;
    Completion<AcquireReply> answered_;
  };
  Client client(std::make_unique<RepeatingStore>());
  EXPECT_FALSE(client.acquire("job"));
  EXPECT_FALSE(client.acquire("job"));
}

// Grants at once; what it has granted cannot be given back as long as the gate is shut.
class StuckReleases final : public Store {
 public:
  explicit StuckReleases(std::shared_future<void> gate) : gate_(std::move(gate)) {}
  const StoreTraits& traits() const override { return traits_; }
  void start(StoreEvents&) override {}
  void close() override {}
  void acquire(AcquireCall call, CallContext, Completion<AcquireReply> done) override {
    done(Granted{TokenNumber::of(1).value(), StoreId::random(system_random()), call.ttl.length(),
                 /*fresh=*/true});
  }
  void renew(std::vector<RenewCall>, CallContext,
             Completion<std::vector<RenewReply>> done) override {
    done(fail(ErrorCode::unavailable, "no server"));
  }
  void release(ReleaseCall, CallContext, Completion<ReleaseReply> done) override {
    gate_.wait();
    done(ReleaseReply::not_held);
  }

 private:
  std::shared_future<void> gate_;
  StoreTraits traits_;
};

TEST_F(ClientTest, ReleaseOfALostLeaseWaitsForNobody) {
  FakeClock clock(BootClock::now());
  std::promise<void> gate;
  Client client(std::make_unique<StuckReleases>(gate.get_future().share()),
                {.owner = {}, .clock = &clock, .random = nullptr});
  auto lease = client.acquire("job", {.ttl = 30s});
  ASSERT_TRUE(lease);
  clock.advance(31s);
  auto released = std::async(std::launch::async, [&] { return lease->release(1h); });
  const bool at_once = released.wait_for(10s) == std::future_status::ready;
  gate.set_value();
  EXPECT_TRUE(at_once);
  EXPECT_EQ(released.get().value(), ReleaseOutcome::too_late);
}

TEST_F(ClientTest, PendingReleasesAreSentBeforeTheClientGoes) {
  {
    Client client = connect();
    faults->next(Operation::release, Fault::lose_request, 2);
    auto lease = client.acquire("job");
    ASSERT_TRUE(lease);
  }
  EXPECT_EQ(faults->calls(Operation::release), 3);
}

}  // namespace
}  // namespace leasehold
