// Clients of etcd that other people wrote, and the etcd store, on the same lock.
#include "etcd_under_test.h"
#include "testing/peer_conformance.h"
#include "testing/results.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;

Meeting meet(const std::string& lock, std::vector<std::string> program) {
  auto under = std::make_shared<EtcdUnderTest>();
  return {.open = [under] { return under->open(); },
          .url = under->url(),
          .lock = lock,
          .program = std::move(program),
          .address = under->server().address(),
          .name = under->prefix() + "/" + lock,
          .shortest_ttl = 2s};
}

const PeerCase kPeers[] = {
    {"go_mutex", [](const std::string& lock) { return meet(lock, {LEASEHOLD_ETCD_GO_PEER}); }},
    {"etcdctl",
     [](const std::string& lock) {
       return meet(lock, python_peer(LEASEHOLD_PEERS "/etcdctl_lock.py"));
     }},
    {"lock_service",
     [](const std::string& lock) {
       return meet(lock, python_peer(LEASEHOLD_PEERS "/lock_service.py"));
     }},
};

INSTANTIATE_TEST_SUITE_P(Etcd, PeerConformance, ::testing::ValuesIn(kPeers), name_of_peer_case);

class PeersAndModes : public PeerConformance {
 protected:
  static std::string ask(Worker& peer, const std::string& order) {
    peer.tell(order);
    return peer.line();
  }
  std::size_t waiters(Client& mine) const {
    return mine.inspect(lock_name(meeting.lock))->waiters.size();
  }
};

INSTANTIATE_TEST_SUITE_P(Etcd, PeersAndModes, ::testing::ValuesIn(kPeers), name_of_peer_case);

TEST_P(PeersAndModes, ThePeerDoesNotPassWhoeverSharesTheLock) {
  Client mine = client();
  Worker other = peer();
  for (const Mode mode : {Mode::shared(), Mode::permit_of(2)}) {
    auto first = mine.acquire(meeting.lock, {.mode = mode});
    auto second = mine.acquire(meeting.lock, {.mode = mode});
    ASSERT_TRUE(good(first) && good(second));
    EXPECT_EQ(ask(other, "try"), "busy") << to_string(mode);
    ASSERT_TRUE(good(first->release()));
    EXPECT_EQ(ask(other, "try"), "busy") << "one of them is still there";
    ASSERT_TRUE(good(second->release()));
    EXPECT_EQ(ask(other, "try"), "held");
    EXPECT_EQ(ask(other, "give"), "free");
  }
}

TEST_P(PeersAndModes, NobodyWhoSharesPassesThePeer) {
  Client mine = client();
  Worker other = peer();
  auto reader = mine.acquire(meeting.lock, {.mode = Mode::shared()});
  ASSERT_TRUE(good(reader));
  other.tell("take");
  while (waiters(mine) != 1) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(bad(mine.acquire(meeting.lock, {.mode = Mode::shared()}), ErrorCode::busy));
  ASSERT_TRUE(good(reader->release()));
  EXPECT_EQ(other.line(), "held");
  EXPECT_TRUE(bad(mine.acquire(meeting.lock, {.mode = Mode::shared()}), ErrorCode::busy));
  EXPECT_TRUE(bad(mine.acquire(meeting.lock, {.mode = Mode::permit_of(2)}), ErrorCode::invalid));
  auto waiting = std::async(std::launch::async, [&] {
    return mine.acquire(meeting.lock, {.wait = 60s, .mode = Mode::shared()});
  });
  while (waiters(mine) != 1) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(ask(other, "give"), "free");
  EXPECT_TRUE(good(waiting.get()));
}

// These have their lock at a key of its own, and do not look for the keys of others.
class BareNameTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::string ask(const std::string& order) {
    other.tell(order);
    return other.line();
  }
  static std::vector<std::string> words(const Meeting& meeting) {
    std::vector<std::string> program = meeting.program;
    program.insert(program.end(), {meeting.address, meeting.name, "30000"});
    return program;
  }
  void SetUp() override { ASSERT_EQ(other.line(), "ready"); }

  static Meeting meet_it() {
    const std::string file = LEASEHOLD_PEERS "/" + GetParam() + ".py";
    if (GetParam() != "tooz") return meet("job", python_peer(file));
    Meeting meeting = meet("job", tooz_peer());
    meeting.address = "etcd3://" + meeting.address + "?timeout={seconds}";
    return meeting;
  }

  const Meeting meeting = meet_it();
  Client mine{meeting.open()};
  Worker other = Worker::start(words(meeting));
};

INSTANTIATE_TEST_SUITE_P(Etcd, BareNameTest,
                         ::testing::Values("python_etcd3", "etcd3gw_lock", "tooz"),
                         [](const auto& info) { return info.param; });

TEST_P(BareNameTest, IsSeenAndWaitedFor) {
  ASSERT_EQ(ask("try"), "held");
  EXPECT_TRUE(bad(mine.acquire("job"), ErrorCode::busy));
  EXPECT_TRUE(mine.inspect(lock_name("job"))->holder()->foreign);
  auto waiting = std::async(std::launch::async, [&] { return mine.acquire("job", {.wait = 60s}); });
  while (mine.inspect(lock_name("job"))->waiters.empty() &&
         waiting.wait_for(1ms) == std::future_status::timeout) {
  }
  EXPECT_EQ(ask("give"), "free");
  EXPECT_TRUE(good(waiting.get()));
}

TEST_P(BareNameTest, DoesNotSeeUs) {
  const auto lease = mine.acquire("job");
  ASSERT_TRUE(good(lease));
  EXPECT_EQ(ask("try"), "held");
}

}  // namespace
}  // namespace leasehold::testing
