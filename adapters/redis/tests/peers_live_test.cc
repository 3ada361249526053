// Clients of Redis that other people wrote, and the Redis stores, on the same lock.
#include <gmock/gmock.h>

#include "server_under_test.h"
#include "testing/peer_conformance.h"
#include "testing/results.h"

namespace leasehold::testing {
namespace {

using ::testing::HasSubstr;

const std::string kRedisPy = LEASEHOLD_PEERS "/redis_py.py";
const std::string kNodeRedlock = LEASEHOLD_PEERS "/redlock.js";
const std::string kRedisSemaphore = LEASEHOLD_PEERS "/redis_semaphore.js";

Meeting meet(const std::string& url, const std::string& lock, std::vector<std::string> program,
             const std::string& address) {
  return {.open = [url] { return open_url(url); },
          .url = url,
          .lock = lock,
          .program = std::move(program),
          .address = address,
          .name = "lock:" + lock};
}

Meeting on_one_server(const std::string& lock, std::vector<std::string> program) {
  RedisUnderTest under;
  return meet(under.url(), lock, std::move(program), under.server().address());
}

Meeting of_kind(const std::string& kind, Meeting meeting) {
  meeting.kind = kind;
  return meeting;
}

Meeting on_a_majority(const std::string& lock, std::vector<std::string> program) {
  RedlockUnderTest under;
  return meet(under.url(), lock, std::move(program), rig::addresses_of(under.nodes()));
}

// Its key is "mutex:" and the name, whatever one does.
Meeting as_redis_semaphore(Meeting meeting, char separator, const std::string& kind) {
  meeting.url += separator + std::string("prefix=mutex:");
  meeting.open = [url = meeting.url] { return open_url(url); };
  meeting.name = meeting.lock;
  meeting.kind = kind;
  return meeting;
}

const PeerCase kPeers[] = {
    {"redis_py",
     [](const std::string& lock) { return on_one_server(lock, python_peer(kRedisPy)); }},
    {"redis_py_asyncio",
     [](const std::string& lock) {
       return of_kind("asyncio", on_one_server(lock, python_peer(kRedisPy)));
     }},
    {"node_redlock",
     [](const std::string& lock) { return on_one_server(lock, node_peer(kNodeRedlock)); }},
    {"node_redlock_5",
     [](const std::string& lock) {
       return of_kind("5", on_one_server(lock, node_peer(kNodeRedlock)));
     }},
    {"tooz",
     [](const std::string& lock) {
       RedisUnderTest under;
       Meeting meeting = meet(under.url() + "?prefix=", "b'_tooz'_b'" + lock + "'_lock",
                              tooz_peer(), "redis://" + under.server().address());
       meeting.address += "?timeout={seconds}";
       meeting.name = lock;
       return meeting;
     }},
    {"redis_semaphore_mutex",
     [](const std::string& lock) {
       return as_redis_semaphore(on_one_server(lock, node_peer(kRedisSemaphore)), '?', "Mutex");
     }},
    {"node_redlock_of_five",
     [](const std::string& lock) { return on_a_majority(lock, node_peer(kNodeRedlock)); }},
    {"redis_semaphore_redlock_mutex_of_five",
     [](const std::string& lock) {
       return as_redis_semaphore(on_a_majority(lock, node_peer(kRedisSemaphore)), '&',
                                 "RedlockMutex");
     }},
};

INSTANTIATE_TEST_SUITE_P(Redis, PeerConformance, ::testing::ValuesIn(kPeers), name_of_peer_case);

class RedisSemaphores : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Redis, RedisSemaphores,
                         ::testing::Values("Semaphore", "MultiSemaphore", "RedlockSemaphore",
                                           "RedlockMultiSemaphore"),
                         [](const auto& info) { return info.param; });

// They are no lock for both: on one server the other side fails where it should wait, and with
// Redlock it takes that for a server that is down.
TEST_P(RedisSemaphores, SeeTheLockAsAnError) {
  RedisUnderTest under;
  Client mine(open_url(under.url() + "?prefix=semaphore:"));
  std::vector<std::string> program = node_peer(kRedisSemaphore);
  program.insert(program.end(), {under.server().address(), "job", "30000", GetParam()});
  Worker other = Worker::start(std::move(program));
  ASSERT_EQ(other.line(), "ready");
  other.tell("try");
  ASSERT_EQ(other.line(), "held");
  EXPECT_TRUE(bad(mine.acquire("job"), ErrorCode::busy));
  other.tell("give");
  ASSERT_EQ(other.line(), "free");
  const auto lease = mine.acquire("job");
  ASSERT_TRUE(good(lease));
  other.tell("try");
  EXPECT_THAT(other.line(), HasSubstr(GetParam().starts_with("Redlock") ? "busy" : "WRONGTYPE"));
}

}  // namespace
}  // namespace leasehold::testing
