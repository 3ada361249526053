#include "testing/watch_conformance.h"

#include <chrono>
#include <list>
#include <set>

#include "testing/held.h"
#include "testing/observed.h"
#include "testing/results.h"
#include "testing/worker.h"

namespace leasehold::testing {

using namespace std::chrono_literals;

namespace {

// So long that no holder's end is looked for.
constexpr Millis kLong = 10min;

}  // namespace

WatchOptions WatchConformance::only_told() {
  const auto opened = store->open();
  return opened->change_hints() != nullptr ? WatchOptions{Millis(1h)} : WatchOptions{};
}

TEST_P(WatchConformance, TellsWhoHoldsTheLockAsItChanges) {
  Client observer = client();
  Client other = client();
  Observed seen;
  const auto watch = observer.watch("job", seen.one(), only_told());
  ASSERT_TRUE(watch);
  ASSERT_TRUE(seen.wait_until_free());
  for (int i = 0; i < 3; ++i) {
    auto held = take(other, "job", {.ttl = kLong});
    ASSERT_TRUE(held);
    ASSERT_TRUE(seen.wait_until_held_by(held->lease.request())) << "round " << i;
    ASSERT_TRUE(held->lease.release());
    ASSERT_TRUE(seen.wait_until_free()) << "round " << i;
  }
}

TEST_P(WatchConformance, TellsWhoHeldItBefore) {
  Client observer = client();
  Client other = client();
  auto held = take(other, "job", {.ttl = kLong});
  ASSERT_TRUE(held);
  Observed seen;
  const auto watch = observer.watch("job", seen.one(), only_told());
  ASSERT_TRUE(watch);
  ASSERT_TRUE(seen.wait_until_held_by(held->lease.request()));
}

TEST_P(WatchConformance, TellsTheEndOfAHolderThatDied) {
  Client observer = client();
  Observed seen;
  const auto watch = observer.watch("job", seen.one());
  ASSERT_TRUE(watch);
  Worker holder = Worker::hold(store->url(), "job", 1s);
  ASSERT_TRUE(seen.wait_for([](const Observed::Told& told) { return told && told->holder(); }));
  holder.kill();
  ASSERT_TRUE(seen.wait_until_free());
}

TEST_P(WatchConformance, TellsWhatAnOperatorHasEnded) {
  Client observer = client();
  Client other = client();
  Observed seen;
  const auto watch = observer.watch("job", seen.one(), only_told());
  ASSERT_TRUE(watch);
  auto held = take(other, "job", {.ttl = kLong});
  ASSERT_TRUE(held);
  ASSERT_TRUE(seen.wait_until_held_by(held->lease.request()));
  const auto ended = observer.force_release(LockName::parse("job").value(), held->lease.request());
  ASSERT_TRUE(ended) << to_string(ended.error());
  ASSERT_TRUE(seen.wait_until_free());
}

TEST_P(WatchConformance, TellsAllWhoHoldBesideEachOther) {
  Client observer = client();
  Client other = client();
  if (!other.store().modes) {
    const auto beside = other.acquire("table", {.mode = leasehold::Mode::shared()});
    EXPECT_TRUE(bad(beside, ErrorCode::unsupported));
    return;
  }
  const auto are_held = [](std::size_t count) {
    return [count](const Observed::Told& told) { return told && told->holders.size() == count; };
  };
  for (const leasehold::Mode mode : {leasehold::Mode::shared(), leasehold::Mode::permit_of(2)}) {
    const std::string lock = mode.is_permit() ? "gpu" : "table";
    Observed seen;
    const auto watch = observer.watch(lock, seen.one());
    ASSERT_TRUE(watch);
    ASSERT_TRUE(seen.wait_until_free());
    auto first = take(other, lock, {.mode = mode, .note = "one"});
    ASSERT_TRUE(first);
    ASSERT_TRUE(seen.wait_for([](const Observed::Told& told) {
      return told && told->holder() && told->holder()->note == "one";
    }));
    auto second = take(other, lock, {.mode = mode});
    ASSERT_TRUE(second);
    ASSERT_TRUE(seen.wait_for(are_held(2)));
    ASSERT_TRUE(first->lease.release());
    ASSERT_TRUE(seen.wait_until_held_by(second->lease.request()));
    ASSERT_TRUE(second->lease.release());
    ASSERT_TRUE(seen.wait_until_free());
  }
}

TEST_P(WatchConformance, TellsOfManyLocksEachItsOwn) {
  Client observer = client();
  Client other = client();
  std::list<Observed> seen(20);
  std::list<Watch> watches;
  for (Observed& it : seen) {
    auto watch = observer.watch("job" + std::to_string(watches.size()), it.one(), only_told());
    ASSERT_TRUE(watch);
    watches.push_back(std::move(*watch));
  }
  for (Observed& it : seen) ASSERT_TRUE(it.wait_until_free());
  auto held = take(other, "job13", {.ttl = kLong});
  ASSERT_TRUE(held);
  ASSERT_TRUE(std::next(seen.begin(), 13)->wait_until_held_by(held->lease.request()));
  EXPECT_EQ(std::next(seen.begin(), 12)->count(), 1U);
}

TEST_P(WatchConformance, TellsOfAPrefixThoseThatAreHeld) {
  Client observer = client();
  Client other = client();
  auto before = take(other, "gpu/1", {.ttl = kLong});
  ASSERT_TRUE(before);
  auto elsewhere = take(other, "job", {.ttl = kLong});
  ASSERT_TRUE(elsewhere);
  Observed seen;
  const auto watch = observer.watch_prefix("gpu/", seen.many(), {.look_every = 100ms});
  ASSERT_TRUE(watch);
  ASSERT_TRUE(seen.wait_until_held_by(before->lease.request()));
  EXPECT_EQ(seen.count(), 1U);
  auto later = take(other, "gpu/2", {.ttl = kLong});
  ASSERT_TRUE(later);
  ASSERT_TRUE(seen.wait_until_held_by(later->lease.request()));
  ASSERT_TRUE(before->lease.release());
  ASSERT_TRUE(seen.wait_for([](const Observed::Told& told) {
    return told && told->holders.empty() && told->lock.str() == "gpu/1";
  }));
}

}  // namespace leasehold::testing
