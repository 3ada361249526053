// Each fault is seen at a server that has it, and not at one that has not.
#include <gmock/gmock.h>

#include <fstream>
#include <stdexcept>

#include "adapters/redis/rig/server.h"
#include "leasehold/client.h"
#include "leasehold/examination.h"
#include "leasehold/redis/adapter.h"
#include "rig/clock_shim.h"
#include "rig/output_of.h"
#include "rig/tcp_proxy.h"
#include "testing/examining.h"
#include "testing/findings.h"

namespace leasehold::redis {
namespace {

using namespace std::chrono_literals;
using namespace leasehold::testing;
using namespace ::testing;

struct ExaminationTest : Examining {
  ExaminationTest() : Examining(adapters()) {}
  static std::string redlock(const std::vector<const rig::RedisServer*>& servers) {
    return "redlock://" + leasehold::rig::addresses_of(servers);
  }
};

TEST_F(ExaminationTest, ADurableServerAloneIsOk) {
  const rig::RedisServer server;
  const auto diagnosis = look(server.url());
  ASSERT_TRUE(diagnosis);
  EXPECT_THAT(diagnosis->findings,
              AllOf(is_ok("redis.version"), is_ok("redis.role"), is_ok("redis.replicas"),
                    is_ok("redis.eviction"), is_ok("redis.persistence"), is_ok("redis.uptime"),
                    is_ok("redis.round_trip"), is_ok("redis.clock")));
  EXPECT_EQ(diagnosis->traits->guarantee, Guarantee::efficiency);
  EXPECT_FALSE(diagnosis->lineage);
  EXPECT_THAT(findings_of(diagnosis->findings, "redis.memory"), IsEmpty()) << "no limit is set";
  EXPECT_EQ(server.cli({"DBSIZE"}), "0") << "looking leaves nothing behind";
}

TEST_F(ExaminationTest, TheLineageIsRead) {
  const rig::RedisServer server;
  auto client = connect(server.url(), {}, registry);
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->acquire("job"));
  EXPECT_EQ(look(server.url())->lineage, client->inspect(LockName::parse("job").value())->store);
}

TEST_F(ExaminationTest, EvictionIsADangerWhereItHits) {
  const rig::RedisServer server;
  server.cli({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  EXPECT_THAT(found(server.url()), is_ok("redis.eviction")) << "without a limit nothing is evicted";
  server.cli({"CONFIG", "SET", "maxmemory", "1gb"});
  EXPECT_THAT(found(server.url()), AllOf(Finds("redis.eviction", Severity::danger, "allkeys-lru"),
                                         is_ok("redis.memory")));
  EXPECT_THAT(found(server.url(), {.as = ExaminedAs::fence}),
              Finds("redis.eviction", Severity::danger, "mark"));
  server.cli({"CONFIG", "SET", "maxmemory-policy", "volatile-ttl"});
  EXPECT_THAT(found(server.url()), Finds("redis.eviction", Severity::danger, "volatile-ttl"));
  EXPECT_THAT(found(server.url(), {.as = ExaminedAs::fence}), is_ok("redis.eviction"))
      << "a mark never expires";
  server.cli({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  EXPECT_THAT(found(server.url()), is_ok("redis.eviction"));
}

TEST_F(ExaminationTest, AFullMemoryIsAWarningAndARefusedWriteADanger) {
  const rig::RedisServer server;
  server.cli({"CONFIG", "SET", "maxmemory", "100kb"});
  EXPECT_THAT(found(server.url()), AllOf(Finds("redis.memory", Severity::warning, "maxmemory"),
                                         Finds("redis.writes", Severity::danger, "OOM")));
}

TEST_F(ExaminationTest, AStoreOfAnotherFormatIsADanger) {
  const rig::RedisServer server;
  ASSERT_TRUE(connect(server.url(), {}, registry));
  EXPECT_THAT(found(server.url()), is_ok("redis.store"));
  server.cli({"SET", "leasehold:store", std::string(32, 'a')});
  EXPECT_THAT(found(server.url()), Finds("redis.store", Severity::danger, "has format 1"));
  server.cli({"SET", "leasehold:store", "theirs"});
  EXPECT_THAT(found(server.url()), Finds("redis.store", Severity::danger, "another program"));
  EXPECT_EQ(server.cli({"GET", "leasehold:store"}), "theirs") << "the doctor changes nothing";
}

TEST_F(ExaminationTest, PersistenceIsJudgedByWhatARestartForgets) {
  const rig::RedisServer forgetful({.durable = false});
  EXPECT_THAT(found(forgetful.url()),
              Finds("redis.persistence", Severity::warning, "there are no snapshots"));
  EXPECT_THAT(found(forgetful.url(), {.as = ExaminedAs::fence}),
              Finds("redis.persistence", Severity::danger, "overtaken"));
  forgetful.cli({"CONFIG", "SET", "save", "3600 1"});
  EXPECT_THAT(found(forgetful.url()), Finds("redis.persistence", Severity::warning, "save 3600 1"));
  const rig::RedisServer server;
  server.cli({"CONFIG", "SET", "appendfsync", "everysec"});
  EXPECT_THAT(found(server.url()), Finds("redis.persistence", Severity::note, "everysec"));
  EXPECT_THAT(found(server.url(), {.as = ExaminedAs::fence}),
              Finds("redis.persistence", Severity::warning, "everysec"));
  server.cli({"CONFIG", "SET", "appendfsync", "no"});
  EXPECT_THAT(found(server.url()), Finds("redis.persistence", Severity::warning, "fsync no"));
}

// A redis-server that is started in a way of its own.
class OddServer {
 public:
  // `before`: what comes before its own arguments.
  explicit OddServer(std::vector<std::string> before, const std::string& config)
      : process_({.argv = with_config(std::move(before), config),
                  .log = folder_.file("log"),
                  .answers = [this] {
                    try {
                      return cli({"PING"}) == "PONG";
                    } catch (const std::runtime_error&) {
                      return false;
                    }
                  }}) {}

  std::string url() const { return "redis://" + port_.address(); }
  std::string pid() const { return std::to_string(process_.pid()); }
  std::string cli(std::vector<std::string> words) const {
    words.insert(words.begin(), {"redis-cli", "-p", port_.str()});
    return rig::output_of(std::move(words));
  }

 private:
  std::vector<std::string> with_config(std::vector<std::string> argv, const std::string& config) {
    std::ofstream(folder_.file("redis.conf"))
        << "port " << port_.str() << "\nbind 127.0.0.1\ndir " << folder_.path().string() << "\n"
        << config;
    argv.insert(argv.end(), {"redis-server", folder_.file("redis.conf")});
    if (config.starts_with("sentinel")) argv.emplace_back("--sentinel");
    return argv;
  }

  leasehold::rig::TempFolder folder_;
  leasehold::rig::Port port_ = leasehold::rig::Port::take();
  leasehold::rig::ServerProcess process_;
};

TEST_F(ExaminationTest, ALogThatCannotBeWrittenIsADanger) {
  // No file may grow beyond a limit that is set later; a disk that is full says the same.
  const OddServer server({"sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"},
                         "appendonly yes\nappendfsync everysec\nsave \"\"\n");
  EXPECT_THAT(found(server.url()), Finds("redis.persistence", Severity::note, "everysec"));
  rig::output_of({"prlimit", "--pid", server.pid(), "--fsize=1000:1000"});
  const auto has_failed = [&] {
    return server.cli({"INFO", "persistence"}).find("aof_last_write_status:err") !=
           std::string::npos;
  };
  for (int i = 0; i < 1000 && !has_failed(); ++i) {
    server.cli({"SET", "key", std::string(2000, 'x')});
  }
  EXPECT_THAT(found(server.url()),
              AllOf(Finds("redis.persistence", Severity::danger, "append-only file failed"),
                    Finds("redis.writes", Severity::danger, "MISCONF")));
}

TEST_F(ExaminationTest, ASentinelIsNoStore) {
  const OddServer sentinel({}, "sentinel resolve-hostnames no\n");
  EXPECT_THAT(found(sentinel.url()), Finds("redis.version", Severity::danger, "sentinel"));
}

TEST_F(ExaminationTest, AFreshStartWithoutDataIsAWarningWithinTheTtl) {
  const rig::RedisServer forgetful({.durable = false});
  EXPECT_THAT(found(forgetful.url(), {.ttl = 24h}),
              Finds("redis.uptime", Severity::warning, "without its data"));
  EXPECT_THAT(found(rig::RedisServer().url(), {.ttl = 24h}), is_ok("redis.uptime"));
}

TEST_F(ExaminationTest, ReplicasAreSeenFromBothSides) {
  const rig::RedisServer primary({.durable = true, .more = {"--repl-diskless-sync-delay", "0"}});
  const rig::RedisServer replica(
      {.durable = true, .more = {"--replicaof", "127.0.0.1 " + std::to_string(primary.port())}});
  while (replica.cli({"INFO", "replication"}).find("master_link_status:up") == std::string::npos) {
  }
  EXPECT_THAT(found(primary.url()),
              AllOf(is_ok("redis.role"), Finds("redis.replicas", Severity::warning, "failover")));
  EXPECT_THAT(found(primary.url(), {.as = ExaminedAs::fence}),
              Finds("redis.replicas", Severity::danger, "overtaken"));
  EXPECT_THAT(found(replica.url()),
              AllOf(Finds("redis.role", Severity::danger, std::to_string(primary.port())),
                    Finds("redis.writes", Severity::danger, "READONLY")));
}

TEST_F(ExaminationTest, AClusterIsRefusedAndSaidSo) {
  const rig::RedisServer node({.cluster = true});
  const auto diagnosis = look(node.url());
  ASSERT_TRUE(diagnosis);
  EXPECT_THAT(diagnosis->findings, Finds("redis.version", Severity::danger, "cluster"));
  EXPECT_FALSE(diagnosis->traits);
}

TEST_F(ExaminationTest, WhatAUserMayNotSeeIsUnseen) {
  const rig::RedisServer server;
  server.cli({"ACL", "SETUSER", "blind", "on", ">hush", "~*", "+@all", "-info"});
  server.cli({"ACL", "SETUSER", "unknowing", "on", ">hush", "~*", "+@all", "-config"});
  const auto blind = found("redis://blind:hush@" + server.address());
  for (const char* check :
       {"redis.role", "redis.replicas", "redis.eviction", "redis.persistence"}) {
    EXPECT_THAT(blind, Finds(check, Severity::unseen, "+info"));
  }
  EXPECT_THAT(
      found("redis://unknowing:hush@" + server.address()),
      AllOf(Finds("redis.persistence", Severity::unseen, "+config|get"), is_ok("redis.eviction")));
  EXPECT_THAT(told(blind), Not(HasSubstr("hush")));
}

TEST_F(ExaminationTest, ASlowServerIsJudgedAgainstTheTtl) {
  const rig::RedisServer server;
  EXPECT_THAT(found(server.url()), Finds("redis.round_trip", Severity::ok, "TTL is 30 s"));
  leasehold::rig::TcpProxy slow(server.port(), [](std::string_view) { return true; });
  slow.delay(40ms);
  const std::string url = "redis://" + slow.address();
  EXPECT_THAT(found(url, {.ttl = 24h}), is_ok("redis.round_trip"));
  EXPECT_THAT(found(url, {.ttl = 200ms}),
              Finds("redis.round_trip", Severity::danger, "Use a TTL of at least"));
}

TEST_F(ExaminationTest, AClockThatDiffersIsSeen) {
  leasehold::rig::ClockShim clock(LEASEHOLD_CLOCK_SHIM);
  const rig::RedisServer server({.environment = clock.environment()});
  clock.move(5401s);
  EXPECT_THAT(found(server.url()), Finds("redis.clock", Severity::warning, "1.5 h ahead"));
  clock.move(-5s);
  EXPECT_THAT(found(server.url()), Finds("redis.clock", Severity::note, "5 s behind"));
}

TEST_F(ExaminationTest, ADeadServerIsUnavailableAndAFrozenOneInTime) {
  rig::RedisServer server;
  server.process().freeze();
  const BootTime before = BootClock::now();
  const auto frozen = look(server.url(), {.timeout = 300ms});
  EXPECT_LT(BootClock::now() - before, 20s);
  server.process().thaw();
  ASSERT_FALSE(frozen);
  EXPECT_EQ(frozen.error().code, ErrorCode::unavailable);
  const std::string url = server.url();
  server.process().kill();
  EXPECT_EQ(look(url).error().code, ErrorCode::unavailable);
}

// ---- redlock -------------------------------------------------------------------------------

struct RedlockExaminationTest : ExaminationTest {
  rig::RedisServer a, b, c;
  const std::string url = redlock({&a, &b, &c});
};

TEST_F(RedlockExaminationTest, NodesOfOneHostAreAWarning) {
  const auto all = found(url);
  EXPECT_THAT(all, AllOf(is_ok("redlock.nodes"),
                         Finds("redlock.independence", Severity::warning, "one host")));
  EXPECT_THAT(findings_of(all, "redis.persistence"), SizeIs(3)) << "each node is looked at";
  const std::string two_names = "redlock://127.0.0.1:" + std::to_string(a.port()) +
                                ",localhost:" + std::to_string(b.port()) +
                                ",127.0.0.2:" + std::to_string(c.port());
  // 127.0.0.2 is not listened at: that node is a lost vote.
  EXPECT_THAT(found(two_names), AllOf(Finds("redlock.nodes", Severity::warning, "127.0.0.2"),
                                      is_ok("redlock.independence")));
}

TEST_F(RedlockExaminationTest, TheSameServerTwiceIsADanger) {
  const std::string twice = "redlock://127.0.0.1:" + std::to_string(a.port()) +
                            ",localhost:" + std::to_string(a.port()) +
                            ",127.0.0.1:" + std::to_string(b.port());
  EXPECT_THAT(found(twice),
              Finds("redlock.independence", Severity::danger, "one and the same server"));
}

TEST_F(RedlockExaminationTest, LostVotesAreCounted) {
  c.process().kill();
  EXPECT_THAT(found(url), Finds("redlock.nodes", Severity::warning, "2 of 3"));
  b.process().kill();
  EXPECT_THAT(found(url), Finds("redlock.nodes", Severity::danger, "no majority"));
  a.process().kill();
  EXPECT_EQ(look(url).error().code, ErrorCode::unavailable);
}

TEST_F(RedlockExaminationTest, ANodeThatRestartedWithoutItsDataIsAWarning) {
  const rig::RedisServer forgetful({.durable = false});
  const auto all = found(redlock({&a, &b, &forgetful}), {.ttl = 24h});
  const auto uptime = findings_of(all, "redis.uptime");
  ASSERT_THAT(uptime, SizeIs(3));
  EXPECT_EQ(uptime[0].severity, Severity::warning);
  EXPECT_EQ(uptime[0].where, forgetful.address());
  EXPECT_THAT(uptime[0].consequence, HasSubstr("second holder can get a majority"));
  EXPECT_EQ(uptime[1].severity, Severity::ok);
}

TEST_F(RedlockExaminationTest, AnEvenNumberIsRefused) {
  EXPECT_EQ(look("redlock://h1,h2,h3,h4").error().code, ErrorCode::invalid);
  EXPECT_EQ(look(url, {.as = ExaminedAs::fence}).error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace leasehold::redis
