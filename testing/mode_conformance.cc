#include "testing/mode_conformance.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "testing/held.h"
#include "testing/raw_store.h"
#include "testing/results.h"
#include "testing/worker.h"

namespace leasehold::testing {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace {

std::optional<Granted> granted(const Result<AcquireReply>& reply) {
  if (!reply || !std::holds_alternative<Granted>(*reply)) return std::nullopt;
  return std::get<Granted>(*reply);
}

bool waits(const Result<AcquireReply>& reply) {
  return reply && std::holds_alternative<Queued>(*reply);
}

Granted take_as(RawStore& raw, Mode mode, const RequestId& request) {
  const auto got = granted(raw.acquire_as(mode, request));
  EXPECT_TRUE(got) << to_string(mode);
  return got.value();
}

std::vector<std::int64_t> slots_of(const LockStatus& status) {
  std::vector<std::int64_t> slots;
  for (const auto& holder : status.holders) slots.push_back(holder.slot.value().number);
  return slots;
}

// What only its modes keep in order.
class Room {
 public:
  void enter(Mode mode, std::optional<Slot> slot) {
    const std::lock_guard lock(mutex_);
    if (mode.is_exclusive()) {
      EXPECT_EQ(readers_ + writers_, 0) << "a writer is alone";
      ++writers_;
    } else if (mode.is_permit()) {
      EXPECT_TRUE(slots_.insert(slot.value()).second) << "a slot is given out once";
      EXPECT_LE(static_cast<std::int64_t>(slots_.size()), mode.permits());
      EXPECT_LT(slot->number, mode.permits());
    } else {
      EXPECT_EQ(writers_, 0) << "no writer beside readers";
      most_readers_ = std::max(most_readers_, ++readers_);
    }
  }
  void leave(Mode mode, std::optional<Slot> slot) {
    const std::lock_guard lock(mutex_);
    if (mode.is_exclusive()) {
      --writers_;
    } else if (mode.is_permit()) {
      slots_.erase(slot.value());
    } else {
      --readers_;
    }
  }
  int most_readers() const { return most_readers_; }

 private:
  std::mutex mutex_;
  int readers_ = 0;
  int writers_ = 0;
  int most_readers_ = 0;
  std::set<Slot> slots_;
};

// So many threads, each with a client of its own, visit the room so often each.
void visit(StoreUnderTest& store, Room& room, int threads, int times,
           const std::function<Mode(int thread, int turn)>& mode_of) {
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      Client client(store.open());
      for (int turn = 0; turn < times; ++turn) {
        const Mode mode = mode_of(i, turn);
        auto lease = client.acquire("job", {.wait = 60s, .mode = mode});
        ASSERT_TRUE(lease) << to_string(lease.error());
        room.enter(mode, lease->slot());
        std::this_thread::yield();
        room.leave(mode, lease->slot());
        ASSERT_TRUE(lease->release());
      }
    });
  }
  for (auto& thread : running) thread.join();
}

}  // namespace

// ---- readers and writers -------------------------------------------------------------------

TEST_P(ModeConformance, ReadersHoldTogetherAndKeepAWriterOut) {
  Client one = client();
  Client two = client();
  auto first = one.acquire("job", {.mode = Mode::shared()});
  auto second = two.acquire("job", {.mode = Mode::shared()});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->mode(), Mode::shared());
  EXPECT_EQ(first->slot(), std::nullopt);
  EXPECT_THAT(status(one, "job").holders, SizeIs(2));
  EXPECT_EQ(two.acquire("job").error().code, ErrorCode::busy);
  EXPECT_EQ(first->release().value(), ReleaseOutcome::released);
  EXPECT_EQ(two.acquire("job").error().code, ErrorCode::busy) << "one of them is still there";
  EXPECT_EQ(second->release().value(), ReleaseOutcome::released);
  auto writer = two.acquire("job");
  ASSERT_TRUE(writer);
  EXPECT_EQ(one.acquire("job", {.mode = Mode::shared()}).error().code, ErrorCode::busy);
}

TEST_P(ModeConformance, NobodyOvertakesAWriterThatWaits) {
  RawStore raw(store->open());
  const RequestId early = new_request();
  const RequestId writer = new_request();
  const RequestId late = new_request();
  take_as(raw, Mode::shared(), early);
  ASSERT_TRUE(waits(raw.acquire_as(Mode::exclusive(), writer, true)));
  EXPECT_TRUE(waits(raw.acquire_as(Mode::shared(), late, true)));
  const auto barging = raw.acquire_as(Mode::shared(), new_request());
  EXPECT_TRUE(barging && std::holds_alternative<Busy>(*barging)) << "not even one that only tries";
  raw.events.forget_nudges();
  EXPECT_EQ(raw.release(early), ReleaseReply::released);
  EXPECT_TRUE(raw.events.wait_for_nudge(writer, 30s));
  EXPECT_TRUE(waits(raw.acquire_as(Mode::shared(), late, true)));
  ASSERT_TRUE(granted(raw.acquire_as(Mode::exclusive(), writer, true)));
  EXPECT_TRUE(waits(raw.acquire_as(Mode::shared(), late, true)));
  EXPECT_EQ(raw.release(writer), ReleaseReply::released);
  EXPECT_TRUE(raw.events.wait_for_nudge(late, 30s));
  EXPECT_TRUE(granted(raw.acquire_as(Mode::shared(), late, true)));
}

TEST_P(ModeConformance, ReadersThatWaitComeTogether) {
  Client one = client();
  auto writer = one.acquire("job");
  ASSERT_TRUE(writer);
  constexpr std::size_t readers = 5;
  std::vector<std::future<Result<Lease>>> coming;
  for (std::size_t i = 0; i < readers; ++i) {
    coming.push_back(std::async(std::launch::async, [&] {
      return client().acquire("job", {.wait = 60s, .mode = Mode::shared()});
    }));
    wait_for_waiters(one, "job", i + 1);
  }
  ASSERT_TRUE(writer->release());
  std::vector<Lease> held;
  for (auto& it : coming) {
    auto lease = it.get();
    ASSERT_TRUE(lease) << to_string(lease.error());
    held.push_back(std::move(*lease));
  }
  EXPECT_THAT(status(one, "job").holders, SizeIs(readers));
}

TEST_P(ModeConformance, EachThatComesCallsTheNextThatFits) {
  for (const Mode mode : {Mode::shared(), Mode::permit_of(3)}) {
    RawStore raw(store->open());
    const std::vector<RequestId> before = {new_request(), new_request(), new_request()};
    const std::vector<RequestId> behind = {new_request(), new_request()};
    const bool permits = mode.is_permit();
    for (const RequestId& it : before) {
      ASSERT_TRUE(granted(raw.acquire_as(permits ? mode : Mode::exclusive(), it)));
      if (!permits) break;
    }
    for (const RequestId& it : behind) ASSERT_TRUE(waits(raw.acquire_as(mode, it, true)));
    raw.events.forget_nudges();
    for (const RequestId& it : before) raw.release(it);
    for (const RequestId& it : behind) {
      ASSERT_TRUE(raw.events.wait_for_nudge(it, 10s)) << to_string(mode);
      EXPECT_TRUE(granted(raw.acquire_as(mode, it, true)));
    }
    for (const RequestId& it : behind) EXPECT_EQ(raw.release(it), ReleaseReply::released);
  }
}

TEST_P(ModeConformance, AWriterThatGivesUpLetsTheReadersBehindItIn) {
  Client one = client();
  auto reader = one.acquire("job", {.mode = Mode::shared()});
  ASSERT_TRUE(reader);
  RawStore raw(store->open());
  const RequestId writer = new_request();
  const RequestId behind = new_request();
  ASSERT_TRUE(waits(raw.acquire_as(Mode::exclusive(), writer, true)));
  ASSERT_TRUE(waits(raw.acquire_as(Mode::shared(), behind, true)));
  raw.release(writer);
  EXPECT_TRUE(raw.events.wait_for_nudge(behind, 30s));
  EXPECT_TRUE(granted(raw.acquire_as(Mode::shared(), behind, true)));
}

TEST_P(ModeConformance, AWriterThatFrozeWhileItWaitedDoesNotKeepReadersOut) {
  Client one = client();
  auto reader = one.acquire("job", {.mode = Mode::shared()});
  ASSERT_TRUE(reader);
  Worker writer = Worker::hold(store->url(), "job", 3s, 600s);
  EXPECT_EQ(writer.line(), "asking");
  wait_for_waiters(one, "job", 1);
  writer.freeze();
  const auto next = client().acquire("job", {.wait = 30s, .mode = Mode::shared()});
  EXPECT_TRUE(next) << to_string(next.error());
  writer.kill();
}

TEST_P(ModeConformance, AReaderThatFrozeKeepsAWriterOutForItsLeaseAndNoLonger) {
  Worker reader = Worker::hold(store->url(), "job", 3s, 0s, Mode::shared());
  EXPECT_EQ(reader.line(), "asking");
  EXPECT_THAT(reader.line(), ::testing::StartsWith("held"));
  reader.freeze();
  Client one = client();
  EXPECT_EQ(one.acquire("job").error().code, ErrorCode::busy);
  EXPECT_TRUE(one.acquire("job", {.wait = 60s}));
  reader.thaw();
  EXPECT_EQ(reader.line(), "lost");
}

TEST_P(ModeConformance, ReadersAndWritersOfManyClientsKeepApart) {
  Room room;
  visit(*store, room, 8, 20, [](int thread, int turn) {
    return (thread + turn) % 4 == 0 ? Mode::exclusive() : Mode::shared();
  });
}

// Each waits at a lock of its own, so that both are waited for together.
TEST_P(ModeConformance, WhoFrozeWhileItWaitedIsPassedOverAndComesInOnlyWhereItFits) {
  struct Use {
    Mode mode;    // of the frozen one
    Mode others;  // of those before and behind it
    std::size_t room;
    std::string lock = "frozen, " + to_string(mode);
    std::vector<Lease> held = {};
    std::optional<Worker> frozen = {};
  };
  Client one = client();
  std::vector<Use> uses;
  uses.push_back({Mode::shared(), Mode::exclusive(), 1});
  uses.push_back({Mode::permit_of(2), Mode::permit_of(2), 2});
  const auto fill = [&](Use& it) {
    for (std::size_t i = 0; i < it.room; ++i) {
      auto lease = one.acquire(it.lock, {.wait = 60s, .mode = it.others});
      ASSERT_TRUE(lease) << to_string(lease.error());
      it.held.push_back(std::move(*lease));
    }
  };
  for (Use& it : uses) {
    fill(it);
    it.frozen = Worker::hold(store->url(), it.lock, 3s, 600s, it.mode);
    EXPECT_EQ(it.frozen->line(), "asking");
    wait_for_waiters(one, it.lock, 1);
    it.frozen->freeze();
  }
  for (Use& it : uses) it.held.clear();
  for (Use& it : uses) {
    fill(it);
    it.frozen->thaw();
  }
  for (Use& it : uses) {
    wait_for_waiters(one, it.lock, 1);
    const auto seen = status(one, it.lock);
    ASSERT_THAT(seen.holders, SizeIs(it.room)) << it.lock;
    for (const auto& holder : seen.holders) EXPECT_EQ(holder.mode, it.others);
    ASSERT_TRUE(it.held.front().release());
    EXPECT_THAT(it.frozen->line(), ::testing::StartsWith("held")) << "it has its turn at last";
    const auto after = status(one, it.lock);
    ASSERT_THAT(after.holders, SizeIs(it.room)) << it.lock;
    if (it.mode.is_permit()) {
      EXPECT_THAT(slots_of(after), ::testing::UnorderedElementsAre(0, 1));
    }
  }
}

// ---- permits -------------------------------------------------------------------------------

TEST_P(ModeConformance, PermitsAreGivenOutUpToTheirNumberLowestSlotFirst) {
  RawStore raw(store->open());
  Client observer = client();
  const Mode mode = Mode::permit_of(3);
  const std::vector<RequestId> holders = {new_request(), new_request(), new_request()};
  std::int64_t last = 0;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const Granted got = take_as(raw, mode, holders[i]);
    EXPECT_EQ(got.slot, Slot{static_cast<std::int64_t>(i)});
    expect_larger(got.token.value(), last);
    last = got.token.value();
  }
  EXPECT_THAT(slots_of(status(observer, "job")), ElementsAre(0, 1, 2));
  const auto fourth = raw.acquire_as(mode, new_request());
  EXPECT_TRUE(fourth && std::holds_alternative<Busy>(*fourth));
  EXPECT_EQ(raw.release(holders[1]), ReleaseReply::released);
  EXPECT_EQ(raw.release(holders[0]), ReleaseReply::released);
  EXPECT_EQ(take_as(raw, mode, new_request()).slot, Slot{0});
  EXPECT_EQ(take_as(raw, mode, new_request()).slot, Slot{1});
}

TEST_P(ModeConformance, PermitsComeInTheOrderOfArrival) {
  RawStore raw(store->open());
  const Mode mode = Mode::permit_of(2);
  const std::vector<RequestId> holders = {new_request(), new_request()};
  const std::vector<RequestId> waiters = {new_request(), new_request(), new_request()};
  for (const RequestId& it : holders) take_as(raw, mode, it);
  for (const RequestId& it : waiters) ASSERT_TRUE(waits(raw.acquire_as(mode, it, true)));
  EXPECT_EQ(raw.release(holders[1]), ReleaseReply::released);
  EXPECT_TRUE(waits(raw.acquire_as(mode, waiters[1], true))) << "it is the first one's turn";
  EXPECT_EQ(granted(raw.acquire_as(mode, waiters[0], true))->slot, Slot{1});
  EXPECT_EQ(raw.release(waiters[0]), ReleaseReply::released);
  EXPECT_EQ(raw.release(holders[0]), ReleaseReply::released);
  EXPECT_TRUE(granted(raw.acquire_as(mode, waiters[2], true)))
      << "two are free, and it is the second of two who wait";
  EXPECT_TRUE(granted(raw.acquire_as(mode, waiters[1], true)));
}

TEST_P(ModeConformance, PermitsThatComeFreeTogetherAreAllTaken) {
  Client one = client();
  constexpr std::int64_t permits = 3;
  const Mode mode = Mode::permit_of(permits);
  std::vector<Lease> held;
  for (std::int64_t i = 0; i < permits; ++i) {
    held.push_back(std::move(one.acquire("job", {.mode = mode}).value()));
  }
  std::vector<std::future<Result<Lease>>> coming;
  for (std::size_t i = 0; i < permits; ++i) {
    coming.push_back(std::async(
        std::launch::async, [&] { return client().acquire("job", {.wait = 60s, .mode = mode}); }));
    wait_for_waiters(one, "job", i + 1);
  }
  held.clear();
  std::set<Slot> slots;
  for (auto& it : coming) {
    auto lease = it.get();
    ASSERT_TRUE(lease) << to_string(lease.error());
    slots.insert(lease->slot().value());
    held.push_back(std::move(*lease));
  }
  EXPECT_THAT(slots, ElementsAre(Slot{0}, Slot{1}, Slot{2}));
}

TEST_P(ModeConformance, PermitsOfManyClientsAreNeverTooManyAndNoSlotIsGivenTwice) {
  Room room;
  visit(*store, room, 8, 20, [](int, int) { return Mode::permit_of(3); });
}

TEST_P(ModeConformance, APermitWhoseHolderFrozeIsGivenToAnotherAfterItsLease) {
  Worker holder = Worker::hold(store->url(), "job", 3s, 0s, Mode::permit_of(1));
  EXPECT_EQ(holder.line(), "asking");
  EXPECT_THAT(holder.line(), ::testing::StartsWith("held"));
  holder.freeze();
  const auto next = client().acquire("job", {.wait = 60s, .mode = Mode::permit_of(1)});
  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_EQ(next->slot(), Slot{0});
  holder.thaw();
  EXPECT_EQ(holder.line(), "lost");
}

TEST_P(ModeConformance, AnOperatorSetsThePermits) {
  RawStore raw(store->open());
  ASSERT_TRUE(raw.set_permits(1));
  EXPECT_EQ(raw.inspect()->set_permits, 1);
  const RequestId first = new_request();
  take_as(raw, Mode::permit_of(1), first);
  const RequestId second = new_request();
  ASSERT_TRUE(waits(raw.acquire_as(Mode::permit_of(1), second, true)));
  raw.events.forget_nudges();
  ASSERT_TRUE(raw.set_permits(3));
  EXPECT_TRUE(raw.events.wait_for_nudge(second, 30s)) << "more take effect at once";
  EXPECT_EQ(granted(raw.acquire_as(Mode::permit_of(1), second, true))->slot, Slot{1})
      << "also for who asked when there were fewer";
  const RequestId third = new_request();
  take_as(raw, Mode::permit_of(3), third);
  ASSERT_TRUE(raw.set_permits(2));
  EXPECT_THAT(raw.inspect()->holders, SizeIs(3)) << "nobody loses one";
  EXPECT_EQ(raw.renew(third), RenewReply::renewed);
  raw.release(first);
  const auto still = raw.acquire_as(Mode::permit_of(2), new_request());
  EXPECT_TRUE(still && std::holds_alternative<Busy>(*still)) << "two are out";
  raw.release(third);
  EXPECT_TRUE(granted(raw.acquire_as(Mode::permit_of(2), new_request())));
  EXPECT_EQ(raw.acquire_as(Mode::permit_of(3), new_request()).error().code, ErrorCode::invalid);
}

TEST_P(ModeConformance, PermitsThatWereSetStayUntilTheyAreCleared) {
  {
    RawStore raw(store->open());
    ASSERT_TRUE(raw.set_permits(4));
  }
  store->restart();
  RawStore raw(store->open());
  for (const Mode other : {Mode::exclusive(), Mode::shared(), Mode::permit_of(3)}) {
    const auto refused = raw.acquire_as(other, new_request());
    ASSERT_FALSE(refused) << to_string(other);
    EXPECT_EQ(refused.error().code, ErrorCode::invalid);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("has 4 permits"), HasSubstr("operator")));
  }
  Client observer = client();
  const auto locks = observer.list();
  ASSERT_TRUE(locks);
  ASSERT_THAT(*locks, SizeIs(1)) << "it is not swept";
  EXPECT_EQ(locks->front().set_permits, 4);
  ASSERT_TRUE(raw.set_permits(std::nullopt));
  ASSERT_TRUE(raw.set_permits(std::nullopt)) << "nothing to forget";
  EXPECT_TRUE(granted(raw.acquire_as(Mode::exclusive(), new_request())));
  EXPECT_EQ(raw.set_permits(2).error().code, ErrorCode::invalid) << "it is held without permits";
  EXPECT_EQ(raw.inspect()->set_permits, std::nullopt);
}

// ---- one kind of use at a time -------------------------------------------------------------

TEST_P(ModeConformance, OnceClearedTheNumberCountsThatTheHoldersHaveNamed) {
  RawStore raw(store->open());
  take_as(raw, Mode::permit_of(3), new_request());
  ASSERT_TRUE(raw.set_permits(1));
  ASSERT_TRUE(raw.set_permits(std::nullopt));
  EXPECT_FALSE(raw.acquire_as(Mode::permit_of(2), new_request()));
  const auto fits = raw.acquire_as(Mode::permit_of(3), new_request(), true);
  EXPECT_TRUE(fits) << to_string(fits.error());
}

TEST_P(ModeConformance, AnotherKindOfUseIsRefusedWhileTheLockIsInUse) {
  RawStore raw(store->open());
  const Mode four = Mode::permit_of(4);
  const struct {
    Mode used;
    std::vector<Mode> refused;
    const char* says;
  } cases[] = {{Mode::exclusive(), {four}, "without permits (exclusive)"},
               {Mode::shared(), {four}, "without permits (shared)"},
               {four, {Mode::exclusive(), Mode::shared(), Mode::permit_of(5)}, "has 4 permits"}};
  for (const auto& it : cases) {
    const RequestId holder = new_request();
    take_as(raw, it.used, holder);
    for (const Mode mode : it.refused) {
      for (const bool queue : {false, true}) {
        const auto refused = raw.acquire_as(mode, new_request(), queue);
        ASSERT_FALSE(refused) << to_string(mode);
        EXPECT_EQ(refused.error().code, ErrorCode::invalid);
        EXPECT_THAT(refused.error().message,
                    AllOf(HasSubstr("'job'"), HasSubstr(it.says), HasSubstr(to_string(mode))));
      }
    }
    EXPECT_THAT(raw.inspect()->waiters, IsEmpty()) << "nothing is left behind";
    EXPECT_EQ(raw.release(holder), ReleaseReply::released);
  }
}

TEST_P(ModeConformance, APermitDoesNotPassWhoWaitsForAnotherUse) {
  RawStore raw(store->open());
  for (const Mode used : {Mode::exclusive(), Mode::permit_of(1)}) {
    const RequestId holder = new_request();
    const RequestId waiter = new_request();
    take_as(raw, used, holder);
    ASSERT_TRUE(waits(raw.acquire_as(used, waiter, true)));
    EXPECT_EQ(raw.release(holder), ReleaseReply::released);
    for (const bool queue : {false, true}) {
      const auto refused = raw.acquire_as(Mode::permit_of(3), new_request(), queue);
      ASSERT_FALSE(refused) << "free, but " << to_string(used) << " is wanted";
      EXPECT_EQ(refused.error().code, ErrorCode::invalid);
    }
    if (used.is_exclusive()) {
      EXPECT_EQ(raw.set_permits(3).error().code, ErrorCode::invalid) << "nor does an operator";
    }
    ASSERT_TRUE(granted(raw.acquire_as(used, waiter, true)));
    EXPECT_EQ(raw.release(waiter), ReleaseReply::released);
  }
}

TEST_P(ModeConformance, WrongModesAndNotesAreRefusedBeforeTheStoreIsAsked) {
  const auto faults = std::make_shared<Faults>();
  Client one = faulty_client(faults);
  for (const std::int64_t count : {0L, -1L, -2L, 10'001L}) {
    const auto refused = one.acquire("job", {.mode = Mode::permit_of(count)});
    ASSERT_FALSE(refused) << count;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid);
    EXPECT_THAT(refused.error().message, HasSubstr("1 to 10000 permits"));
    EXPECT_EQ(one.set_permits(lock_name("job"), count).error().code, ErrorCode::invalid);
  }
  for (const std::string& note :
       {std::string(1025, 'x'), std::string("a\nb"), std::string("\xff")}) {
    EXPECT_EQ(one.acquire("job", {.note = note}).error().code, ErrorCode::invalid);
  }
  EXPECT_EQ(faults->calls(Operation::acquire), 0);
  EXPECT_TRUE(one.acquire("job", {.note = std::string(1024, 'x')}));
}

// ---- one's own grant alone -----------------------------------------------------------------

TEST_P(ModeConformance, ARepeatedAcquireGetsTheSameGrant) {
  RawStore raw(store->open());
  for (const Mode mode : {Mode::shared(), Mode::permit_of(2)}) {
    const RequestId request = new_request();
    const Granted first = take_as(raw, mode, request);
    const Granted again = take_as(raw, mode, request);
    EXPECT_EQ(again.token, first.token);
    EXPECT_EQ(again.slot, first.slot);
    EXPECT_THAT(raw.inspect()->holders, SizeIs(1));
    EXPECT_EQ(raw.release(request), ReleaseReply::released);
  }
}

TEST_P(ModeConformance, RenewAndReleaseTouchOnlyTheirOwn) {
  RawStore raw(store->open());
  for (const Mode mode : {Mode::shared(), Mode::permit_of(2)}) {
    const RequestId one = new_request();
    const RequestId two = new_request();
    take_as(raw, mode, one);
    take_as(raw, mode, two);
    EXPECT_EQ(raw.release(new_request()), ReleaseReply::not_held);
    EXPECT_EQ(raw.renew(new_request()), RenewReply::gone);
    EXPECT_EQ(raw.release(one), ReleaseReply::released);
    EXPECT_EQ(raw.renew(one), RenewReply::gone);
    EXPECT_EQ(raw.renew(two), RenewReply::renewed);
    EXPECT_EQ(raw.force_release(one).value(), ReleaseReply::not_held);
    EXPECT_EQ(raw.force_release(two).value(), ReleaseReply::released);
    EXPECT_THAT(raw.inspect()->holders, IsEmpty());
  }
}

TEST_P(ModeConformance, AnExpiredGrantIsNeitherRenewedNorReleased) {
  RawStore raw(store->open());
  for (const Mode mode : {Mode::shared(), Mode::permit_of(1)}) {
    const RequestId request = new_request();
    ASSERT_TRUE(granted(raw.acquire_as(mode, request, false, 100ms)));
    while (!raw.inspect()->holders.empty()) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(raw.renew(request), RenewReply::gone);
    EXPECT_EQ(raw.release(request), ReleaseReply::not_held);
    const RequestId next = new_request();
    take_as(raw, mode, next);
    raw.release(next);
  }
}

TEST_P(ModeConformance, GrantsOutliveTheStoresProcess) {
  const RequestId reader = new_request();
  {
    RawStore raw(store->open());
    take_as(raw, Mode::shared(), reader);
  }
  store->restart();
  Client one = client();
  EXPECT_EQ(one.acquire("job").error().code, ErrorCode::busy);
  EXPECT_TRUE(one.acquire("job", {.mode = Mode::shared()}));
}

TEST_P(ModeConformance, PermitsKeepTheirSlotsOverTheStoresProcess) {
  const Mode mode = Mode::permit_of(3);
  const std::vector<RequestId> requests = {new_request(), new_request(), new_request()};
  {
    RawStore raw(store->open());
    // A store may take back the release of a lease of less than a minute.
    for (const RequestId& it : requests)
      ASSERT_TRUE(granted(raw.acquire_as(mode, it, false, 2min)));
    EXPECT_EQ(raw.release(requests[1]), ReleaseReply::released);
  }
  store->restart();
  RawStore raw(store->open());
  const auto seen = raw.inspect().value();
  ASSERT_THAT(seen.holders, SizeIs(2));
  for (const auto& holder : seen.holders) {
    EXPECT_EQ(holder.slot, holder.request == requests[0] ? Slot{0} : Slot{2});
  }
  EXPECT_EQ(take_as(raw, mode, new_request()).slot, Slot{1}) << "which came back";
  EXPECT_TRUE(std::holds_alternative<Busy>(raw.acquire_as(mode, new_request()).value()));
}

TEST_P(ModeConformance, AKeptPermitStaysTakenWithoutItsHolder) {
  Client one = client();
  if (!one.store().keeps_after_release) return;  // nothing promised
  const Mode mode = Mode::permit_of(1);
  auto lease = one.acquire("job", {.ttl = 24h, .mode = mode});
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->release_after(2s).value(), ReleaseOutcome::released);
  EXPECT_TRUE(status(one, "job").holders.at(0).kept);
  EXPECT_EQ(one.acquire("job", {.mode = mode}).error().code, ErrorCode::busy);
  EXPECT_TRUE(one.acquire("job", {.wait = 30s, .mode = mode}));
}

// ---- lost replies --------------------------------------------------------------------------

TEST_P(ModeConformance, AcquireAndReleaseWhoseRepliesWereLostAreDoneOnce) {
  for (const Mode mode : {Mode::shared(), Mode::permit_of(2)}) {
    const auto faults = std::make_shared<Faults>();
    Client one = faulty_client(faults);
    faults->next(Operation::acquire, Fault::lose_reply, 2);
    auto lease = one.acquire("job", {.ttl = 24h, .mode = mode});
    ASSERT_TRUE(lease) << to_string(lease.error());
    Client observer = client();
    ASSERT_THAT(status(observer, "job").holders, SizeIs(1)) << "granted once";
    EXPECT_EQ(status(observer, "job").holders[0].slot, lease->slot());
    faults->next(Operation::release, Fault::lose_reply);
    const auto outcome = lease->release();
    const bool honest = outcome ? *outcome == ReleaseOutcome::released
                                : outcome.error().code == ErrorCode::outcome_unknown;
    EXPECT_TRUE(honest);
    EXPECT_TRUE(client().acquire("job", {.wait = 30s}));
  }
}

TEST_P(ModeConformance, AnAbandonedAcquireIsGivenBackInTheBackground) {
  for (const Mode mode : {Mode::shared(), Mode::permit_of(1)}) {
    const auto faults = std::make_shared<Faults>();
    Client one = faulty_client(faults);
    faults->always(Operation::acquire, Fault::lose_reply);
    const auto lost = one.acquire("job", {.ttl = 24h, .store_timeout = 500ms, .mode = mode});
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code, ErrorCode::outcome_unknown);
    const BootTime patience = BootClock::now() + 30s;
    Client observer = client();
    while (!status(observer, "job").holders.empty() && BootClock::now() < patience) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_TRUE(observer.acquire("job", {.wait = 30s}));
  }
}

// ---- what others see -----------------------------------------------------------------------

TEST_P(ModeConformance, ModesAndNotesAreShown) {
  RawStore raw(store->open());
  const std::string note = "10.0.0.7:9000, version 2.1";
  const RequestId first = new_request();
  const RequestId second = new_request();
  const RequestId writer = new_request();
  ASSERT_TRUE(granted(raw.acquire_as(Mode::shared(), first, false, 30s, note)));
  ASSERT_TRUE(granted(raw.acquire_as(Mode::shared(), second)));
  ASSERT_TRUE(waits(raw.acquire_as(Mode::exclusive(), writer, true, 30s, "next")));
  Client observer = client();
  const auto listed = observer.list();
  ASSERT_TRUE(listed && listed->size() == 1);
  for (const LockStatus& seen : {status(observer, "job"), listed->front()}) {
    ASSERT_THAT(seen.holders, SizeIs(2));
    EXPECT_EQ(seen.holders[0].request, first);
    EXPECT_EQ(seen.holders[0].mode, Mode::shared());
    EXPECT_EQ(seen.holders[0].note, note);
    EXPECT_EQ(seen.holders[1].note, "");
    EXPECT_GT(seen.holders[1].remaining, 1s);
    ASSERT_THAT(seen.waiters, SizeIs(1));
    EXPECT_EQ(seen.waiters[0].mode, Mode::exclusive());
    EXPECT_EQ(seen.waiters[0].note, "next");
  }
  const RequestId alone = new_request();
  RawStore other(store->open(), "other");
  ASSERT_TRUE(granted(other.acquire_as(Mode::exclusive(), alone, false, 30s, note)));
  EXPECT_EQ(other.inspect()->holders.at(0).note, note);
}

TEST_P(ModeConformance, ARepeatedAcquireKeepsItsFirstNote) {
  RawStore raw(store->open());
  for (const Mode mode : {Mode::exclusive(), Mode::shared(), Mode::permit_of(2)}) {
    const RequestId request = new_request();
    for (const char* note : {"first", "second"}) {
      ASSERT_TRUE(granted(raw.acquire_as(mode, request, false, 30s, note))) << to_string(mode);
      EXPECT_EQ(raw.inspect()->holders.at(0).note, "first") << to_string(mode);
    }
    EXPECT_EQ(raw.release(request), ReleaseReply::released);
  }
}

}  // namespace leasehold::testing
