// What every store must do for calls with a completion, and for thousands of them at once.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <list>
#include <thread>

#include "rig/heap_in_use.h"
#include "testing/raw_store.h"
#include "testing/results.h"
#include "testing/store_conformance.h"
#include "testing/told.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;

ReleaseOutcome release(const AsyncClient& async, Lease lease) {
  Told<ReleaseOutcome> told;
  async.release(std::move(lease), {}, told);
  return told.get().value();
}

// Each drops its lease as soon as it is told.
void expect_all_granted_in_some_order(const AsyncClient& waiters) {
  std::list<Told<void>> told;
  for (int i = 0; i < 5; ++i) {
    waiters.acquire("job", {.wait = 60s},
                    [tell = told.emplace_back().completion()](const Result<Lease>& lease) mutable {
                      tell(lease ? Status() : fail(lease.error()));
                    });
  }
  for (auto& each : told) EXPECT_TRUE(good(each.get()));
}

}  // namespace

TEST_P(StoreConformance, AsyncWaitersAreGrantedOneByOne) {
  Client one = client();
  if (!one.store().queues) return expect_all_granted_in_some_order(AsyncClient(one));
  const AsyncClient waiters(client());
  auto held = one.acquire("job");
  ASSERT_TRUE(good(held));
  std::list<Told<Lease>> told;
  for (std::size_t i = 0; i < 5; ++i) {
    waiters.acquire("job", {.wait = 60s}, told.emplace_back());
    wait_for_waiters(one, "job", i + 1);
  }
  ASSERT_TRUE(held->release());
  for (auto it = told.begin(); it != told.end(); ++it) {
    auto lease = it->get();
    ASSERT_TRUE(good(lease));
    EXPECT_EQ(status(one, "job").holder()->request, lease->request());
    if (std::next(it) != told.end()) {
      EXPECT_FALSE(std::next(it)->is_told());
    }
    EXPECT_EQ(release(waiters, std::move(*lease)), ReleaseOutcome::released);
  }
}

TEST_P(StoreConformance, AsyncRepliesThatAreLostAreSortedOut) {
  const auto faults = std::make_shared<Faults>();
  const Client faulty = faulty_client(faults);
  const AsyncClient async(faulty);
  Client observer = client();
  for (const Fault fault : {Fault::lose_reply, Fault::lose_request}) {
    faults->next(Operation::acquire, fault, 2);
    Told<Lease> told;
    async.acquire("job", {.ttl = 24h}, told);
    auto lease = told.get();
    ASSERT_TRUE(good(lease));
    EXPECT_EQ(status(observer, "job").holder()->request, lease->request());
    faults->next(Operation::release, fault);
    Told<ReleaseOutcome> released;
    async.release(std::move(*lease), {}, released);
    const auto outcome = released.get();
    EXPECT_TRUE(outcome ? *outcome == ReleaseOutcome::released
                        : outcome.error().code == ErrorCode::outcome_unknown);
    EXPECT_TRUE(good(observer.acquire("job", {.wait = 30s})));
  }
}

TEST_P(StoreConformance, AsyncWaitThatIsStoppedLeavesNothingBehind) {
  Client one = client();
  const Client two = client();
  const auto held = one.acquire("job");
  std::stop_source stop;
  Told<Lease> told;
  AsyncClient(two).acquire("job", {.wait = 1h, .stop = stop.get_token()}, told);
  if (one.store().queues) wait_for_waiters(one, "job", 1);
  stop.request_stop();
  EXPECT_TRUE(bad(told.get(), ErrorCode::cancelled));
  wait_for_waiters(one, "job", 0);
}

TEST_P(StoreConformance, AsyncClientThatGoesLeavesNothingBehind) {
  Client one = client();
  const auto held = one.acquire("job");
  Told<Lease> told;
  {
    const Client two = client();
    AsyncClient(two).acquire("job", {.wait = 1h}, told);
    if (one.store().queues) wait_for_waiters(one, "job", 1);
  }
  EXPECT_TRUE(told.is_told());
  EXPECT_TRUE(bad(told.get(), ErrorCode::cancelled));
  EXPECT_EQ(status(one, "job").waiters.size(), 0U);
}

TEST_P(StoreConformance, AsyncQuestionsAnswerAsThoseThatWait) {
  Client one = client();
  const AsyncClient async(one);
  const auto held = one.acquire("job");
  Told<LockStatus> inspected;
  async.inspect(lock_name("job"), {}, inspected);
  EXPECT_EQ(inspected.get().value().holder()->request, held->request());
  Told<std::vector<LockStatus>> listed;
  async.list({}, listed);
  EXPECT_EQ(listed.get().value().size(), 1U);
  Told<ReleaseReply> forced;
  async.force_release(lock_name("job"), held->request(), {}, forced);
  EXPECT_EQ(forced.get().value(), ReleaseReply::released);
  Told<std::optional<OnceRecord>> recalled;
  async.recall(lock_name("job"), "key", {}, recalled);
  const auto same = one.recall(lock_name("job"), "key");
  const auto answer = recalled.get();
  ASSERT_EQ(answer.has_value(), same.has_value());
  EXPECT_TRUE(same ? !answer->has_value() : answer.error().code == same.error().code);
}

// ---- thousands -----------------------------------------------------------------------------

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMost = 2'000;  // beside other tests ten thousand take minutes
#else
constexpr int kMost = 10'000;
#endif
constexpr int kLocks = 100;
constexpr int kFew = 100;

std::size_t threads() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                    std::filesystem::directory_iterator()));
}

std::string lock_of(int number) {
  return "crowded-" + std::to_string(number % kLocks);
}

// Those who wait. Each that is granted a lock gives it back at once. Outlives their client.
class Crowd {
 public:
  void wait_at(const Client& client, int count) {
    const AsyncClient async(client);
    const AcquireOptions options{
        .ttl = 1min, .wait = 1h, .store_timeout = 1min, .stop = stop_.get_token()};
    for (int i = 0; i < count; ++i) {
      async.acquire(lock_of(i), options, [this](const Result<Lease>& lease) {
        EXPECT_TRUE(good(lease) || bad(lease, ErrorCode::cancelled));
        if (lease) ++granted_;
        ++told_;
        told_.notify_all();
      });
    }
  }
  void stop() { stop_.request_stop(); }
  void wait_until_told(int count) {
    for (int now = told_; now < count; now = told_) told_.wait(now);
  }
  int granted() const { return granted_; }

 private:
  std::stop_source stop_;
  std::atomic<int> granted_ = 0;
  std::atomic<int> told_ = 0;
};

}  // namespace

TEST_P(StoreConformance, ThousandsWaitWithAFewThreadsAndFourKibEach) {
  if (store->has_session_per_waiter()) return;
  const int many = std::min(store->crowd(), kMost);
  Client observer = client();
  const auto faults = std::make_shared<Faults>();
  Crowd crowd;
  const Client crowded = faulty_client(faults);
  std::list<Lease> held;
  for (int i = 0; i < kLocks; ++i) {
    held.push_back(observer.acquire(lock_of(i), {.ttl = 1min}).value());
  }
  crowd.wait_at(crowded, kFew);
  faults->wait_for_answers(Operation::acquire, kFew, 5min);
  const std::size_t threads_of_few = threads();
  const std::size_t before = rig::heap_in_use();
  crowd.wait_at(crowded, many - kFew);
  const std::size_t in_line = rig::heap_in_use();
  // Nobody asks again before all have asked: those that wait to ask stand in one line.
  faults->wait_for_answers(Operation::acquire, many + kFew, 5min);
  EXPECT_LE(threads(), threads_of_few + 8)
      << "the store's and its library's, when there is much to do";
  // On a busy machine many are just asking again, which takes more.
  const auto each = [&] { return (rig::heap_in_use() - before) / (many - kFew); };
  std::size_t waiting = each();
  for (const auto began = BootClock::now(); waiting > 4096 && BootClock::now() < began + 1min;) {
    std::this_thread::sleep_for(10ms);
    waiting = each();
  }
  EXPECT_LE(waiting, 4096U);
  held.clear();
  crowd.wait_until_told(2 * kLocks);
  EXPECT_GE(crowd.granted(), 2 * kLocks);
  crowd.stop();
  crowd.wait_until_told(many);
  for (int i = 0; i < kLocks; ++i) {
    wait_for_waiters(observer, lock_of(i), 0);
    EXPECT_TRUE(good(observer.acquire(lock_of(i), {.wait = 30s})));
  }
  std::printf("each costs %zu bytes, and %zu before it has asked\n", waiting,
              (in_line - before) / (many - kFew));
}

}  // namespace leasehold::testing
