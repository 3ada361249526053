// The driver of watches: threads, observers that hang, and what outlives what.
#include "leasehold/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <list>
#include <thread>

#include "leasehold/client.h"
#include "testing/faulty_store.h"
#include "testing/memory_store.h"
#include "testing/observed.h"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using namespace leasehold::testing;

class WatchTest : public ::testing::Test {
 protected:
  Client connect(bool hints = true) {
    auto owned = std::make_unique<MemoryStore>();
    memory = owned.get();
    if (hints) memory->have_hints();
    return Client(with_faults(std::move(owned), faults));
  }

  std::shared_ptr<Faults> faults = std::make_shared<Faults>();
  MemoryStore* memory = nullptr;
  Observed seen;
};

constexpr WatchOptions kNeverByTime{Millis(1h)};

std::ptrdiff_t own_threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST_F(WatchTest, TheStateComesAtOnceAndThenEachChange) {
  Client client = connect();
  const auto watch = client.watch("job", seen.one(), kNeverByTime);
  ASSERT_TRUE(watch);
  EXPECT_TRUE(seen.wait_until_free());
  auto lease = client.acquire("job");
  ASSERT_TRUE(lease);
  EXPECT_TRUE(seen.wait_until_held_by(lease->request()));
  ASSERT_TRUE(lease->release());
  EXPECT_TRUE(seen.wait_until_free());
}

TEST_F(WatchTest, AStoreThatTellsNothingIsAskedByTime) {
  Client client = connect(/*hints=*/false);
  const auto watch = client.watch("job", seen.one(), {.look_every = 10ms});
  ASSERT_TRUE(watch);
  EXPECT_TRUE(seen.wait_until_free());
  auto lease = client.acquire("job");
  ASSERT_TRUE(lease);
  EXPECT_TRUE(seen.wait_until_held_by(lease->request()));
}

TEST_F(WatchTest, WhatCannotBeSeenIsToldAndThenTheState) {
  Client client = connect();
  const auto watch = client.watch("job", seen.one(), {.look_every = 10ms});
  ASSERT_TRUE(watch);
  EXPECT_TRUE(seen.wait_until_free());
  faults->always(Operation::inspect, Fault::refuse);
  EXPECT_TRUE(seen.wait_until_unseen());
  faults->never(Operation::inspect);
  EXPECT_TRUE(seen.wait_until_free());
  memory->lose_hints();
  EXPECT_TRUE(seen.wait_until_unseen());
  EXPECT_TRUE(seen.wait_until_free());
}

TEST_F(WatchTest, APrefixIsTold) {
  Client client = connect();
  const auto watch = client.watch_prefix("gpu/", seen.many(), {.look_every = 10ms});
  ASSERT_TRUE(watch);
  auto lease = client.acquire("gpu/1");
  ASSERT_TRUE(lease);
  EXPECT_TRUE(seen.wait_until_held_by(lease->request()));
  ASSERT_TRUE(lease->release());
  EXPECT_TRUE(seen.wait_until_free());
}

TEST_F(WatchTest, AThousandShareAFewThreads) {
  Client client = connect();
  auto first = client.watch("job", seen.one(), kNeverByTime);
  ASSERT_TRUE(first);
  EXPECT_TRUE(seen.wait_until_free());
  const auto few = own_threads();
  std::list<Watch> all;
  std::list<Observed> observed(1000);
  int i = 0;
  for (Observed& it : observed) {
    auto watch = client.watch("job" + std::to_string(++i), it.one(), kNeverByTime);
    ASSERT_TRUE(watch);
    all.push_back(std::move(*watch));
  }
  for (Observed& it : observed) ASSERT_TRUE(it.wait_until_free());
  EXPECT_LE(own_threads(), few + 3) << "four for observers, of which there was one";
  while (memory->hinted() < 1001) std::this_thread::yield();
  auto lease = client.acquire("job500");
  ASSERT_TRUE(lease);
  EXPECT_TRUE(std::next(observed.begin(), 499)->wait_until_held_by(lease->request()));
}

TEST_F(WatchTest, AnObserverThatHangsStopsNoRenewalAndNoLoss) {
  Client client = connect();
  std::promise<void> go_on;
  const std::shared_future<void> gone_on(go_on.get_future());
  std::atomic<int> hanging = 0;
  std::list<Watch> hang;
  for (int i = 0; i < 4; ++i) {
    auto watch = client.watch("job" + std::to_string(i), [&](const Result<LockStatus>&) {
      ++hanging;
      gone_on.wait();
    });
    ASSERT_TRUE(watch);
    hang.push_back(std::move(*watch));
  }
  while (hanging < 4) std::this_thread::yield();
  auto lease = client.acquire("mine", {.ttl = 300ms});
  ASSERT_TRUE(lease);
  faults->wait_for_calls(Operation::renew, faults->calls(Operation::renew) + 4);
  EXPECT_EQ(lease->state(), LeaseState::held);
  std::promise<void> lost;
  const std::stop_callback told(lease->lost(), [&] { lost.set_value(); });
  memory->end(lease->request());
  EXPECT_EQ(lost.get_future().wait_for(30s), std::future_status::ready);
  go_on.set_value();
}

TEST_F(WatchTest, AnObserverThatHangsDoesNotKeepTheOthersFromBeingTold) {
  Client client = connect();
  std::promise<void> go_on;
  std::promise<void> hangs;
  const auto hanging = client.watch("job", [&](const Result<LockStatus>&) {
    hangs.set_value();
    go_on.get_future().wait();
  });
  hangs.get_future().wait();
  const auto watch = client.watch("job", seen.one());
  EXPECT_TRUE(seen.wait_until_free());
  go_on.set_value();
}

TEST_F(WatchTest, ASlowObserverIsToldTheLatest) {
  Client client = connect();
  std::promise<void> go_on;
  std::promise<void> began;
  std::atomic<int> calls = 0;
  Observed told;
  const auto watch = client.watch(
      "job",
      [&, tell = told.one()](const Result<LockStatus>& now) {
        if (++calls == 1) {
          began.set_value();
          go_on.get_future().wait();
        }
        tell(now);
      },
      kNeverByTime);
  ASSERT_TRUE(watch);
  began.get_future().wait();
  Observed other;
  const auto beside = client.watch("job", other.one(), kNeverByTime);
  EXPECT_TRUE(other.wait_until_free());
  std::optional<RequestId> last;
  for (int i = 0; i < 3; ++i) {
    auto lease = client.acquire("job");
    ASSERT_TRUE(lease);
    last = lease->request();
    EXPECT_TRUE(other.wait_until_held_by(*last));
    if (i < 2) {
      ASSERT_TRUE(lease->release());
      EXPECT_TRUE(other.wait_until_free());
      continue;
    }
    go_on.set_value();
    EXPECT_TRUE(told.wait_until_held_by(*last));
    EXPECT_EQ(calls, 2) << "those in between were not told";
  }
}

TEST_F(WatchTest, AFailureIsToldToASlowObserverBeforeWhatCameAfterIt) {
  Client client = connect();
  std::promise<void> go_on;
  std::promise<void> began;
  std::atomic<bool> first = true;
  const auto watch = client.watch("job",
                                  [&, tell = seen.one()](const Result<LockStatus>& now) {
                                    if (first.exchange(false)) {
                                      began.set_value();
                                      go_on.get_future().wait();
                                      return;
                                    }
                                    tell(now);
                                  },
                                  {.look_every = 10ms});
  began.get_future().wait();
  Observed other;
  const auto beside = client.watch("job", other.one(), {.look_every = 10ms});
  EXPECT_TRUE(other.wait_until_free());
  faults->always(Operation::inspect, Fault::refuse);
  EXPECT_TRUE(other.wait_until_unseen());
  faults->never(Operation::inspect);
  EXPECT_TRUE(other.wait_until_free());
  go_on.set_value();
  ASSERT_TRUE(seen.wait_until_unseen());
  EXPECT_TRUE(seen.wait_until_free());
}

TEST_F(WatchTest, TheDestructorWaitsForARunningObserver) {
  Client client = connect();
  std::promise<void> began;
  std::atomic<bool> returned = false;
  {
    const auto watch = client.watch("job", [&](const Result<LockStatus>&) {
      began.set_value();
      std::this_thread::sleep_for(50ms);  // it is still there when the watch ends
      returned = true;
    });
    ASSERT_TRUE(watch);
    began.get_future().wait();
  }
  EXPECT_TRUE(returned);
}

TEST_F(WatchTest, AnObserverMayEndItsOwnWatchAndTheLastOfTheClient) {
  auto client = std::make_unique<Client>(connect());
  struct Own {
    std::optional<Watch> watch;
    std::promise<void> given;
    std::promise<void> ended;
  };
  const auto own = std::make_shared<Own>();
  auto ended = own->ended.get_future();
  auto watch = client->watch("job", [own](const Result<LockStatus>&) {
    own->given.get_future().wait();
    own->watch.reset();
    own->ended.set_value();
  });
  ASSERT_TRUE(watch);
  own->watch = std::move(*watch);
  client.reset();
  own->given.set_value();
  EXPECT_EQ(ended.wait_for(30s), std::future_status::ready);
}

TEST_F(WatchTest, OutlivesTheClient) {
  auto client = std::make_unique<Client>(connect(/*hints=*/false));
  const auto watch = client->watch("job", seen.one(), {.look_every = 10ms});
  EXPECT_TRUE(seen.wait_until_free());
  client.reset();
  faults->next(Operation::inspect, Fault::refuse);
  EXPECT_TRUE(seen.wait_until_unseen());
}

TEST_F(WatchTest, AMovedOneGoesOnAndAnEndedOneIsNotTold) {
  Client client = connect();
  auto watch = client.watch("job", seen.one(), kNeverByTime);
  ASSERT_TRUE(watch);
  Watch moved(std::move(*watch));
  EXPECT_TRUE(seen.wait_until_free());
  Observed other;
  moved = client.watch("other", other.one(), kNeverByTime).value();
  EXPECT_TRUE(other.wait_until_free());
  const auto before = seen.count();
  auto lease = client.acquire("job");
  auto of_other = client.acquire("other");
  EXPECT_TRUE(other.wait_until_held_by(of_other->request()));
  EXPECT_EQ(seen.count(), before);
}

TEST_F(WatchTest, WrongInputIsRefused) {
  Client client = connect();
  const auto code = [](const Result<Watch>& watch) {
    return watch ? std::nullopt : std::optional(watch.error().code);
  };
  EXPECT_EQ(code(client.watch("", seen.one())), ErrorCode::invalid);
  EXPECT_EQ(code(client.watch("job", nullptr)), ErrorCode::invalid);
  EXPECT_EQ(code(client.watch("job", seen.one(), {.look_every = 9ms})), ErrorCode::invalid);
  EXPECT_EQ(code(client.watch("job", seen.one(), {.look_every = 2h})), ErrorCode::invalid);
  EXPECT_EQ(code(client.watch_prefix("a\n", seen.many())), ErrorCode::invalid);
  EXPECT_EQ(code(client.watch_prefix("", nullptr)), ErrorCode::invalid);
}

TEST_F(WatchTest, AForkedChildHasNone) {
  Client client = connect();
  auto watch = client.watch("job", seen.one());
  ASSERT_TRUE(watch);
  EXPECT_TRUE(seen.wait_until_free());
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = !client.watch("job", [](const Result<LockStatus>&) {});
    { const Watch ends(std::move(*watch)); }
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(WIFEXITED(status));
}

}  // namespace
}  // namespace leasehold
