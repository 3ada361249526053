#include "testing/peer_conformance.h"

#include <algorithm>
#include <fstream>
#include <future>
#include <thread>

#include "testing/raw_store.h"
#include "testing/results.h"

namespace leasehold::testing {

using namespace std::chrono_literals;

namespace {

std::string ask(Worker& peer, const std::string& order) {
  peer.tell(order);
  return peer.line();
}

std::string name_of_this_case() {
  return ::testing::UnitTest::GetInstance()->current_test_info()->name();
}

}  // namespace

std::vector<std::string> python_peer(const std::string& file) {
  return {"/usr/bin/python3", LEASEHOLD_TESTING "/peer.py", file};
}

std::vector<std::string> tooz_peer() {
  return python_peer(LEASEHOLD_TESTING "/tooz_lock.py");
}

std::vector<std::string> node_peer(const std::string& file) {
  return {"env", "NODE_PATH=" LEASEHOLD_NODE_MODULES, "node", LEASEHOLD_TESTING "/peer.js", file};
}

PeerConformance::PeerConformance() {
  std::string lock = name_of_this_case();
  std::replace(lock.begin(), lock.end(), '/', '-');
  meeting = GetParam().meet(lock);
}

Worker PeerConformance::peer(Millis ttl) const {
  std::vector<std::string> words = meeting.program;
  words.insert(words.end(), {meeting.address, meeting.name, std::to_string(ttl.count())});
  if (!meeting.kind.empty()) words.push_back(meeting.kind);
  Worker started = Worker::start(std::move(words));
  EXPECT_EQ(started.line(), "ready");
  return started;
}

TEST_P(PeerConformance, LeaseholdSeesThePeersLock) {
  Worker other = peer();
  Client mine = client();
  ASSERT_EQ(ask(other, "try"), "held");
  EXPECT_TRUE(bad(mine.acquire(meeting.lock), ErrorCode::busy));
  const auto status = mine.inspect(lock_name(meeting.lock));
  ASSERT_TRUE(good(status));
  EXPECT_TRUE(status->holder());
  ASSERT_EQ(ask(other, "give"), "free");
  EXPECT_TRUE(good(mine.acquire(meeting.lock)));
}

TEST_P(PeerConformance, ThePeerSeesLeaseholdsLock) {
  Client mine = client();
  Worker other = peer();
  auto lease = mine.acquire(meeting.lock);
  ASSERT_TRUE(good(lease));
  EXPECT_EQ(ask(other, "try"), "busy");
  ASSERT_TRUE(good(lease->release()));
  EXPECT_EQ(ask(other, "try"), "held");
}

TEST_P(PeerConformance, EachWaitsForTheOther) {
  Client mine = client();
  Worker other = peer();
  ASSERT_EQ(ask(other, "take"), "held");
  auto waiting = std::async(std::launch::async,
                            [&] { return mine.acquire(meeting.lock, {.wait = kPatience}); });
  while (mine.store().queues && mine.inspect(lock_name(meeting.lock))->waiters.empty() &&
         waiting.wait_for(1ms) == std::future_status::timeout) {
  }
  // Where there is no queue, nothing tells that it waits.
  EXPECT_EQ(waiting.wait_for(mine.store().queues ? 0ms : 100ms), std::future_status::timeout)
      << "it does not wait";
  EXPECT_EQ(ask(other, "give"), "free");
  auto lease = waiting.get();
  ASSERT_TRUE(good(lease));

  other.tell("take");
  std::this_thread::sleep_for(100ms);  // nothing tells that it waits
  ASSERT_TRUE(good(lease->release()));
  EXPECT_EQ(other.line(), "held");
}

TEST_P(PeerConformance, NoUpdateIsLost) {
  constexpr int kTimes = 50;
  const std::string file = folder.file("number");
  std::ofstream(file) << 0;
  std::vector<Worker> others;
  for (int i = 0; i < 2; ++i) others.push_back(peer());
  for (Worker& other : others) other.tell("race " + std::to_string(kTimes) + " " + file);
  const auto race = [&] {
    Client mine = client();
    for (int i = 0; i < kTimes; ++i) {
      auto lease = mine.acquire(meeting.lock, {.wait = kPatience});
      ASSERT_TRUE(good(lease));
      int number = 0;
      std::ifstream(file) >> number;
      std::ofstream(file) << number + 1;
      ASSERT_TRUE(good(lease->release()));
    }
  };
  std::thread one(race);
  std::thread two(race);
  one.join();
  two.join();
  for (Worker& other : others) EXPECT_EQ(other.line(), "done");
  int number = 0;
  std::ifstream(file) >> number;
  EXPECT_EQ(number, 4 * kTimes);
}

TEST_P(PeerConformance, ALockOutlivesItsKilledPeerByNoMoreThanTheTtl) {
  constexpr Millis kSlowMachine = 5s;
  Client mine = client();
  Worker other = peer(meeting.shortest_ttl);
  ASSERT_EQ(ask(other, "take"), "held");
  other.kill();
  EXPECT_TRUE(good(mine.acquire(meeting.lock, {.wait = meeting.shortest_ttl + kSlowMachine})));
}

TEST_P(PeerConformance, ThePeerGetsTheLockOfAKilledLeaseholdProcess) {
  Worker mine = Worker::hold(meeting.url, meeting.lock, meeting.shortest_ttl);
  ASSERT_EQ(mine.line(), "asking");
  ASSERT_EQ(mine.line().substr(0, 4), "held");
  Worker other = peer();
  EXPECT_EQ(ask(other, "try"), "busy");
  mine.kill();
  EXPECT_EQ(ask(other, "take"), "held");
}

}  // namespace leasehold::testing
