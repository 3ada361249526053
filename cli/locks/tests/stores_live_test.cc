// The program on every store, with real servers.
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "adapters/etcd/rig/server.h"
#include "adapters/postgres/rig/server.h"
#include "adapters/redis/rig/server.h"
#include "adapters/zookeeper/rig/server.h"
#include "cli/tests/cli_fixture.h"
#include "leasehold/url.h"
#include "rig/tcp_proxy.h"
#include "testing/in_child.h"

namespace leasehold::cli {
namespace {

using leasehold::rig::EtcdServer;
using leasehold::rig::IsRequest;
using leasehold::rig::PostgresServer;
using leasehold::rig::RedisServer;
using leasehold::rig::TcpProxy;
using leasehold::rig::ZookeeperServer;
using nlohmann::json;

// One of each, for all cases.
class Servers {
 public:
  static Servers& running() {
    static Servers servers;
    return servers;
  }

  // A store with no lock in it.
  std::string fresh(const std::string& kind, const std::string& sqlite) {
    const std::string number = std::to_string(++made_);
    if (kind == "sqlite") return sqlite;
    if (kind == "postgres") return postgres_.url(postgres_.create_database());
    if (kind == "advisory") return postgres_.url(postgres_.create_database()) + "?mode=advisory";
    if (kind.starts_with("red")) {
      for (const RedisServer& server : redis_) server.cli({"FLUSHALL"});
    }
    if (kind == "redis") return redis_[0].url();
    if (kind == "etcd") return "etcd://" + etcd_.address() + "/test-" + number;
    if (kind == "zookeeper") return "zookeeper://" + zookeeper_.address() + "/test-" + number;
    return "redlock://" + redis_[0].address() + "," + redis_[1].address() + "," +
           redis_[2].address();
  }

  std::string etcd_address() const { return etcd_.address(); }
  // In the database of `url`.
  std::string psql(const std::string& url, const std::string& sql) const {
    const std::string database = Url::parse(url)->path.substr(1);
    return postgres_.psql(sql, database);
  }

 private:
  int made_ = 0;
  PostgresServer postgres_;
  std::array<RedisServer, 3> redis_;
  EtcdServer etcd_;
  ZookeeperServer zookeeper_;
};

bool gives_tokens(const std::string& kind) {
  return kind != "redis" && kind != "redlock";
}

class StoresTest : public CliTest, public ::testing::WithParamInterface<std::string> {
 protected:
  const std::string url = Servers::running().fresh(GetParam(), store());

  void SetUp() override {
    // gRPC ends its threads while the program exits, and LeakSanitizer crashes at them now and
    // then.
    if (GetParam() == "etcd") etcd_.emplace();
    // A store that is a file is made by the first run.
    ASSERT_EQ(on_store({"run", "first", "--", "true"}).status, 0);
  }

  Finished on_store(Words words) const {
    words.insert(words.begin() + 1, {"--store", url});
    return leasehold(words);
  }
  Child hold(const std::string& lock) const {
    return start_ready(
        run_shell({"--store", url, lock, "--owner", "me"}, "echo ready; read line; exit 7"));
  }
  json shown(const std::string& lock) const {
    return json::parse(on_store({"show", lock, "--json"}).out).at("lock");
  }

 private:
  std::optional<NoLeakCheck> etcd_;
};

std::string loaded_by(const Child& child) {
  std::ifstream maps("/proc/" + std::to_string(child.pid()) + "/maps");
  return {std::istreambuf_iterator<char>(maps), {}};
}

TEST_P(StoresTest, RunExcludesAndPassesTheStatusOn) {
  Child holder = hold("nightly");
  const Finished busy = on_store({"run", "nightly", "--", "true"});
  EXPECT_EQ(busy.status, 75) << busy.err;
  EXPECT_THAT(busy.err, HasSubstr("me"));
  write_all(holder.in().get(), "go\n");
  EXPECT_EQ(holder.wait().shell_status(), 7);
  EXPECT_EQ(on_store({"run", "nightly", "--", "sh", "-c", "exit 3"}).status, 3);
}

TEST_P(StoresTest, LoadsOnlyTheClientThatItUses) {
  const std::string used = GetParam() == "advisory"  ? "postgres"
                           : GetParam() == "redlock" ? "redis"
                                                     : GetParam();
  Child holder = hold("nightly");
  const std::string loaded = loaded_by(holder);
  for (const std::string module : {"postgres", "redis", "etcd", "zookeeper"}) {
    EXPECT_EQ(loaded.find("/" + module + ".so") != std::string::npos, module == used) << module;
  }
  EXPECT_EQ(loaded.find("libgrpc") != std::string::npos, used == "etcd");
  EXPECT_EQ(loaded.find("libpq") != std::string::npos, used == "postgres");
}

TEST_P(StoresTest, LsShowAndForceRelease) {
  Child holder = hold("nightly");
  EXPECT_THAT(on_store({"ls"}).out, HasSubstr("nightly"));
  const json lock = shown("nightly");
  EXPECT_EQ(lock.at("state"), "held");
  EXPECT_EQ(lock.at("holder").at("owner"), "me");
  EXPECT_EQ(lock.at("known_as").is_null(), GetParam() == "sqlite");
  EXPECT_EQ(on_store({"release", "nightly", "--force"}).status, 0);
  EXPECT_EQ(shown("nightly").at("state"), "free");
}

TEST_P(StoresTest, FencedAsTheGuaranteeSays) {
  const Finished fenced =
      on_store({"run", "nightly", "--fenced", "--", "sh", "-c", "echo token $LEASEHOLD_TOKEN"});
  if (gives_tokens(GetParam())) {
    EXPECT_EQ(fenced.status, 0) << fenced.err;
    EXPECT_TRUE(std::regex_search(fenced.out, std::regex("^token [1-9][0-9]*\n"))) << fenced.out;
    return;
  }
  EXPECT_EQ(fenced.status, 77);
  EXPECT_THAT(fenced.err, HasSubstr("gives no safe tokens"));
}

TEST_P(StoresTest, DoctorLooksAtIt) {
  const Finished looked = on_store({"doctor", "--json", "--fail-on", "danger"});
  EXPECT_EQ(looked.err, "");
  const json report = json::parse(looked.out);
  EXPECT_EQ(looked.status, report.at("counts").at("danger") == 0 ? 0 : 78) << looked.out;
  EXPECT_EQ(report.at("guarantee"), gives_tokens(GetParam()) ? "correctness" : "efficiency");
  bool measured = false;
  for (const json& it : report.at("findings")) {
    measured = measured || (it.at("check").get<std::string>().ends_with(".round_trip") &&
                            it.at("severity") != "unseen");
  }
  EXPECT_TRUE(measured) << looked.out;
}

TEST_P(StoresTest, ChildFindsTheSameStoreByItsAddress) {
  const Finished inside = on_store(
      {"run", "nightly", "--", "sh", "-c", "leasehold run nightly -- true; echo inner $?"});
  EXPECT_THAT(inside.out, HasSubstr("inner 75")) << inside.err;
}

TEST_P(StoresTest, OnceRunsOnce) {
  const Words once = {"run", "nightly", "--once", "2026-11-15", "--", "sh", "-c", "echo ran"};
  EXPECT_EQ(on_store(once).out, "ran\n");
  const Finished again = on_store(once);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, "");
  EXPECT_EQ(leasehold({"once", "ls", "nightly", "--store", url}).out, "2026-11-15\n");
  EXPECT_EQ(leasehold({"once", "forget", "nightly", "2026-11-15", "--store", url}).status, 0);
  EXPECT_EQ(on_store(once).out, "ran\n");
}

// Whatever else keeps a session of this store alive.
TEST_P(StoresTest, HeldWithoutAHeartbeatUntilItsTimeIsOver) {
  Child holder =
      start_piped({"hold", "--store", url, "nightly", "--ttl", "4s", "--heartbeat", "1s"});
  EXPECT_THAT(read_until(holder.out().get(), "\n", within(kPatience)), HasSubstr("\"held\""));
  const json told = json::parse(read_until(holder.out().get(), "\n", within(kPatience)));
  const auto ends = std::chrono::steady_clock::now() +
                    std::chrono::milliseconds(told.at("remaining_ms").get<int>());
  EXPECT_EQ(told.at("event"), "uncertain") << told;
  const Finished next = on_store({"run", "nightly", "--wait", "60s", "--", "true"});
  EXPECT_EQ(next.status, 0) << next.err;
  EXPECT_GE(std::chrono::steady_clock::now() + 50ms, ends) << "before its time";
  EXPECT_THAT(read_until(holder.out().get(), "\n", within(kPatience)), HasSubstr("\"lost\""));
  EXPECT_EQ(holder.wait_for(kPatience), process::ExitStatus::exited(76));
}

TEST_P(StoresTest, AtLeastKeepsTheLockAfterAQuickCommand) {
  Child quick = start({"--store", url, "nightly", "--at-least", "1h", "--", "true"});
  while (shown("nightly").at("state") == "free") std::this_thread::sleep_for(10ms);
  const Finished next = on_store({"run", "nightly", "--wait", "1s", "--", "true"});
  EXPECT_EQ(next.status, 75) << next.err;
  quick.signal(SIGTERM);  // a store that cannot keep it by itself needs the wrapper to stay
}

TEST_P(StoresTest, ATurnCountsAfterAQuickCommand) {
  const Words turn = {"run", "calls", "--rate", "1/1h", "--", "true"};
  if (GetParam() == "advisory" || GetParam() == "redlock") {
    const Finished refused = on_store(turn);
    EXPECT_EQ(refused.status, 77);
    EXPECT_THAT(refused.err, HasSubstr("has no permits, which a rate needs"));
    return;
  }
  Child quick =
      start_ready(run_shell({"--store", url, "calls", "--rate", "1/1h", "-v"}, "echo ready"));
  if (GetParam() == "zookeeper") {  // which does not keep it
    const auto stays = [&] {
      return errors().find("staying to keep the turn of 'calls'") != std::string::npos;
    };
    while (!stays() && !quick.wait_for(10ms)) {
    }
    EXPECT_EQ(on_store(turn).status, 75);
    quick.signal(SIGTERM);
    EXPECT_EQ(quick.wait_for(kPatience), process::ExitStatus::exited(0));
    return;
  }
  EXPECT_EQ(quick.wait_for(kPatience), process::ExitStatus::exited(0));
  EXPECT_EQ(on_store(turn).status, 75);
}

TEST_P(StoresTest, RotatedLineageIsTold) {
  const json before = shown("nightly").at("lineage");
  const Finished rotated = on_store({"rotate-store-id", "--force"});
  EXPECT_EQ(rotated.status, 0) << rotated.err;
  const json after = shown("nightly").at("lineage");
  EXPECT_FALSE(after.is_null());
  EXPECT_NE(after, before);
}

INSTANTIATE_TEST_SUITE_P(Every, StoresTest,
                         ::testing::Values("sqlite", "postgres", "advisory", "redis", "redlock",
                                           "etcd", "zookeeper"),
                         [](const auto& store) { return store.param; });

// The same servers by [::1].
class Ipv6Test : public StoresTest {
 protected:
  std::string by_ipv6() {
    static const std::regex address("127\\.0\\.0\\.1:([0-9]+)");
    std::string text = url;
    for (std::smatch found; std::regex_search(text, found, address);) {
      const auto port = static_cast<std::uint16_t>(std::stoi(found[1]));
      ways_.push_back(std::make_unique<TcpProxy>(port, IsRequest{}, "127.0.0.1", "::1"));
      text = found.prefix().str() + ways_.back()->address() + found.suffix().str();
    }
    return text;
  }

 private:
  std::vector<std::unique_ptr<TcpProxy>> ways_;
};

TEST_P(Ipv6Test, LeadsToTheSameStore) {
  Child holder = hold("nightly");
  const std::string other_way = by_ipv6();
  ASSERT_THAT(other_way, HasSubstr("[::1]:"));
  const Finished busy = leasehold({"run", "--store", other_way, "nightly", "--", "true"});
  EXPECT_EQ(busy.status, 75) << busy.err;
  const Finished ran =
      leasehold({"run", "--store", other_way, "weekly", "--", "sh", "-c", "echo $LEASEHOLD_STORE"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("[::1]:")) << "a child finds it by the same address";
  const Finished looked = leasehold({"doctor", "--store", other_way, "--json"});
  EXPECT_EQ(looked.err, "");
  EXPECT_EQ(json::parse(looked.out).at("guarantee"),
            gives_tokens(GetParam()) ? "correctness" : "efficiency");
}

INSTANTIATE_TEST_SUITE_P(EveryServer, Ipv6Test,
                         ::testing::Values("postgres", "advisory", "redis", "redlock", "etcd",
                                           "zookeeper"),
                         [](const auto& store) { return store.param; });

// What `leasehold show` prints is what the other program is to be given.
class KnownAsTest : public CliTest {
 protected:
  std::string known_as(const std::string& url) const {
    return json::parse(leasehold({"show", "--store", url, "nightly", "--json"}).out)
        .at("lock")
        .at("known_as");
  }
  Child hold(const std::string& url) const {
    return start_ready(run_shell({"--store", url, "nightly"}, "echo ready; read line"));
  }
  static void let_go(Child& holder) {
    write_all(holder.in().get(), "go\n");
    EXPECT_EQ(holder.wait().shell_status(), 0);
  }
};

TEST_F(KnownAsTest, PsqlIsExcludedByTheAdvisoryLockOfThatKey) {
  const std::string url = Servers::running().fresh("advisory", store());
  Child holder = hold(url);
  const std::string statement = known_as(url);
  EXPECT_THAT(statement, HasSubstr("pg_try_advisory_lock"));
  EXPECT_EQ(Servers::running().psql(url, statement), "f");
  let_go(holder);
  EXPECT_EQ(Servers::running().psql(url, statement), "t");
}

TEST_F(KnownAsTest, EtcdctlIsExcludedByTheLockOfThatName) {
  const NoLeakCheck etcd;
  const std::string url = Servers::running().fresh("etcd", store());
  Child holder = hold(url);
  const std::string name = known_as(url);
  auto other = Child::start({.argv = {"etcdctl", "--endpoints", Servers::running().etcd_address(),
                                      "lock", name, "echo", "got it"},
                             .in = process::Null{},
                             .out = process::Piped{}});
  ASSERT_TRUE(other);
  const auto waiters = [&] {
    return json::parse(leasehold({"show", "--store", url, "nightly", "--json"}).out)
        .at("lock")
        .at("waiters")
        .size();
  };
  while (waiters() == 0 && !other->poll()) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(other->poll()) << "it waits";
  let_go(holder);
  EXPECT_THAT(process::read_all(other->out().get()), HasSubstr("got it"));
  EXPECT_EQ(other->wait().shell_status(), 0);
}

// ---- a password that is not in the URL ------------------------------------------------------

class PasswordTest : public CliTest {
 protected:
  ~PasswordTest() override { unsetenv("STORE_PASSWORD"); }

  Finished run(const std::string& url) const {
    return leasehold({"run", "--store", url, "nightly", "--", "true"});
  }
  // `url` names a user who needs the password hunter2.
  void check(const std::string& url) {
    const Finished without = run(url);
    EXPECT_NE(without.status, 0);
    write("right", "hunter2\n");
    write("wrong", "hunter3\n");
    for (const char* file : {"right", "wrong"}) {
      ASSERT_EQ(shell("chmod 600 " + path(file)).status, 0);
    }
    const Finished by_file = run(url + "?password_file=" + path("right"));
    EXPECT_EQ(by_file.status, 0) << by_file.err;
    const Finished refused = run(url + "?password_file=" + path("wrong"));
    EXPECT_THAT(refused.status, ::testing::AnyOf(64, 69)) << refused.err;
    EXPECT_THAT(refused.err, Not(HasSubstr("hunter3")));
    setenv("STORE_PASSWORD", "hunter2", /*overwrite=*/1);
    const Finished by_environment = run(url + "?password_env=STORE_PASSWORD");
    EXPECT_EQ(by_environment.status, 0) << by_environment.err;
  }
};

TEST_F(PasswordTest, ReachesPostgres) {
  const PostgresServer server({.access = {"host all app 127.0.0.1/32 scram-sha-256"}});
  server.psql("CREATE ROLE app LOGIN SUPERUSER PASSWORD 'hunter2'");
  check(server.url("postgres", "app"));
}

TEST_F(PasswordTest, ReachesRedisAndRedlock) {
  const std::array<RedisServer, 3> servers;
  for (const RedisServer& server : servers) {
    server.cli({"ACL", "SETUSER", "app", "on", ">hunter2", "~*", "&*", "+@all"});
  }
  check("redis://app@" + servers[0].address());
  check("redlock://app@" + servers[0].address() + "," + servers[1].address() + "," +
        servers[2].address());
}

TEST_F(PasswordTest, ReachesEtcd) {
  const NoLeakCheck etcd;
  const EtcdServer server;
  ASSERT_EQ(server.ctl({"user", "add", "root:hunter2"}).status, 0);
  ASSERT_EQ(server.ctl({"user", "grant-role", "root", "root"}).status, 0);
  ASSERT_EQ(server.ctl({"auth", "enable"}).status, 0);
  check("etcd://root@" + server.address());
}

using HangingStoreTest = CliTest;

TEST_F(HangingStoreTest, ASignalEndsTheConnecting) {
  const RedisServer server;
  TcpProxy proxy(server.port());
  proxy.hold(true);
  Child wrapper = start({"x", "--store", "redis://" + proxy.address(), "--", "true"});
  proxy.wait_for_connection();
  wrapper.signal(SIGTERM);
  EXPECT_EQ(wrapper.wait_for(30s), process::ExitStatus::exited(130)) << errors();
  EXPECT_THAT(errors(), HasSubstr("a signal came before the command was started"));
}

TEST_F(HangingStoreTest, WaitCoversAStoreThatIsNotThereYet) {
  const RedisServer server;
  TcpProxy proxy(server.port());
  proxy.refuse(true);
  const std::string url = "redis://" + proxy.address();
  const Finished never = leasehold({"run", "x", "--store", url, "--wait", "300ms", "--", "true"});
  EXPECT_EQ(never.status, 69) << never.err;

  Child wrapper = start({"x", "--store", url, "--wait", "1h", "--", "echo", "ran"});
  while (errors().find('\n') == std::string::npos) ASSERT_FALSE(wrapper.wait_for(1ms)) << errors();
  proxy.refuse(false);
  EXPECT_EQ(read_all(wrapper.out().get(), within(kPatience)), "ran\n") << errors();
  EXPECT_THAT(errors(), ::testing::MatchesRegex("leasehold: waiting for the store: [^\n]*\n"));

  proxy.refuse(true);
  Child stopped = start({"x", "--store", url, "--wait", "1h", "--", "true"});
  const auto lines = [&] {
    const std::string all = errors();
    return std::count(all.begin(), all.end(), '\n');
  };
  while (lines() < 2) ASSERT_FALSE(stopped.wait_for(1ms)) << errors();
  stopped.signal(SIGTERM);
  EXPECT_EQ(stopped.wait_for(kPatience), process::ExitStatus::exited(130)) << errors();
}

TEST_F(HangingStoreTest, WaitCoversASocketThatIsNotThereYet) {
  const Finished never = leasehold({"run", "x", "--wait", "300ms", "--store",
                                    "postgres:///app?host=" + path("nowhere"), "--", "true"});
  EXPECT_EQ(never.status, 69) << never.err;
  EXPECT_THAT(never.err, HasSubstr("waiting for the store: "));
}

TEST_F(HangingStoreTest, CtrlZStopsTheConnecting) {
  const RedisServer server;
  TcpProxy proxy(server.port());
  proxy.hold(true);
  process::Command run = command(
      {LEASEHOLD_PROGRAM, "run", "x", "--store", "redis://" + proxy.address(), "--", "true"});
  run.placement = process::Placement::own_group;  // an orphaned group does not stop
  auto wrapper = Child::start(run);
  ASSERT_TRUE(wrapper);
  proxy.wait_for_connection();
  wrapper->signal(SIGTSTP);
  std::optional<int> stopped;
  while (!(stopped = wrapper->take_stop()) && !wrapper->poll()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(stopped, SIGTSTP);
  proxy.hold(false);
  wrapper->signal(SIGCONT);
  EXPECT_EQ(wrapper->wait_for(30s), process::ExitStatus::exited(0));
}

TEST_F(HangingStoreTest, ASignalEndsTheConnectingOfARelay) {
  const std::string outbox = "sqlite:" + path("app.db");
  ASSERT_EQ(shell("sqlite3 " + path("app.db") + " 'CREATE TABLE t(x)'").status, 0);
  ASSERT_EQ(leasehold({"outbox", "install", outbox}).status, 0);
  const RedisServer server;
  TcpProxy proxy(server.port());
  proxy.hold(true);
  auto relay = Child::start(command({LEASEHOLD_PROGRAM, "outbox", "relay", outbox, "--lock-store",
                                     "redis://" + proxy.address(), "--command", "true"}));
  ASSERT_TRUE(relay);
  proxy.wait_for_connection();
  relay->signal(SIGTERM);
  EXPECT_EQ(relay->wait_for(30s), process::ExitStatus::exited(0)) << "69 if it was not heard";
}

// The store's answer to the question whether the work was done comes when the lease is over.
class LateAnswerTest : public CliTest, public ::testing::WithParamInterface<std::string> {
 protected:
  const std::string url = Servers::running().fresh("postgres", store());

  // Nobody else reads or writes it until the child's stdin is closed.
  Child locked_table(const std::string& table) const {
    process::Command psql = command({"psql", "-qAt", url});
    psql.in = Piped{};
    psql.out = Piped{};
    auto child = Child::start(psql);
    EXPECT_TRUE(child);
    write_all(child->in().get(), "BEGIN; LOCK TABLE " + table + "; SELECT 'locked';\n");
    EXPECT_EQ(read_until(child->out().get(), "locked\n", within(kPatience)), "locked\n");
    return std::move(*child);
  }
  void await_a_waiter() const {
    const std::string waiters = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    while (Servers::running().psql(url, waiters) == "0") std::this_thread::sleep_for(1ms);
  }
};

TEST_P(LateAnswerTest, NothingIsStartedUnderALostLease) {
  ASSERT_EQ(leasehold({"run", "--store", url, "first", "--", "true"}).status, 0);
  Child table = locked_table("leasehold.once");
  Child wrapper = start({"x", "--store", url, "--ttl", "300ms", "--once", "k", "--on-lost",
                         GetParam(), "--", "touch", path("started")});
  await_a_waiter();
  wrapper.signal(SIGSTOP);
  const Finished next =
      leasehold({"run", "x", "--store", url, "--wait", "30s", "--", "echo", "next"});
  EXPECT_EQ(next.out, "next\n") << next.err;
  table.in().reset();
  table.wait();
  wrapper.signal(SIGCONT);
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(76)) << errors();
  EXPECT_EQ(shell("test -e " + path("started")).status, 1);
  EXPECT_THAT(errors(), AllOf(HasSubstr("not started"), Not(HasSubstr("ending the command"))));
}

INSTANTIATE_TEST_SUITE_P(OnLost, LateAnswerTest, ::testing::Values("kill", "term", "ignore"),
                         [](const auto& policy) { return policy.param; });

class WithoutProcTest : public CliTest {
 protected:
  // `leasehold <words>` where /proc shows no process but itself, which a sanitizer needs.
  process::Command without_proc(Words words) const {
    const std::string hide_proc =
        "mkdir self && mount --make-private /proc && mount --bind /proc/$$ self && "
        "mount -t tmpfs none /proc && mkdir /proc/self && mount --bind self /proc/self && "
        "exec \"$0\" \"$@\"";
    Words argv = {"sh", "-c", "cd " + path("") + " && " + hide_proc, LEASEHOLD_PROGRAM};
    argv.insert(argv.end(), words.begin(), words.end());
    return command(leasehold::testing::in_namespaces({"--mount"}, argv));
  }
};

TEST_F(WithoutProcTest, WhatTheCommandLeavesRunningIsEndedBeforeTheLockIsFree) {
  const NoLeakCheck it_looks_into_proc;
  const std::string url = Servers::running().fresh("redis", store());
  process::Command run =
      without_proc({"run", "x", "--store", url, "--", "sh", "-c", "sleep 600 & exit 3"});
  run.out = Piped{};
  run.err = process::Null{};
  auto wrapper = Child::start(run);
  ASSERT_TRUE(wrapper);
  EXPECT_EQ(wrapper->wait_for(kPatience), process::ExitStatus::exited(3))
      << leasehold::testing::kNamespacesNeed;
  EXPECT_TRUE(wait_readable(wrapper->out().get(), within(0s))) << "the sleep goes on";
}

class ForeignKeyTest : public CliTest {};

TEST_F(ForeignKeyTest, ItsTimeIsShown) {
  const std::string url = Servers::running().fresh("redis", store());
  const std::string port = url.substr(url.rfind(':') + 1);
  const auto remaining = [&](const std::string& name) {
    const json lock = json::parse(leasehold({"show", "--store", url, name, "--json"}).out);
    return lock.at("lock").at("holder").at("remaining_ms");
  };
  ASSERT_EQ(shell("redis-cli -p " + port + " SET lock:timed x PX 600000").status, 0);
  EXPECT_GT(remaining("timed"), 500'000);
  EXPECT_THAT(leasehold({"show", "--store", url, "timed"}).out, HasSubstr("remaining   9m5"));
  ASSERT_EQ(shell("redis-cli -p " + port + " SET lock:endless x").status, 0);
  EXPECT_EQ(remaining("endless"), nullptr);
  EXPECT_THAT(leasehold({"show", "--store", url, "endless"}).out, HasSubstr("remaining   no end"));
  EXPECT_THAT(leasehold({"ls", "--store", url}).out, AllOf(HasSubstr("no end"), HasSubstr("9m5")));
}

class ReadmeTest : public CliTest {};

// ZooKeeper's sessions last as long as its server likes.
TEST_F(ReadmeTest, ALeaseThatIsMuchShorterThanAskedForIsTold) {
  const std::string url = Servers::running().fresh("zookeeper", store());
  const Finished shorter = leasehold({"run", "x", "--store", url, "--ttl", "2h", "--", "true"});
  EXPECT_EQ(shorter.status, 0);
  EXPECT_THAT(shorter.err, AllOf(HasSubstr("gives a lease of "), HasSubstr("and not 2h")));
  EXPECT_EQ(leasehold({"run", "x", "--store", url, "--ttl", "2s", "--", "true"}).err, "");
}

TEST_F(ReadmeTest, TheExampleOfEveryStoreWorks) {
  write("export.sh", "#!/bin/sh\necho exported\n");
  ASSERT_EQ(shell("chmod +x " + path("export.sh")).status, 0);
  std::ifstream readme(LEASEHOLD_SOURCES "/README.md");
  const std::regex example("^leasehold run --store ([a-z]+):[^ ]* nightly -- ./export.sh.*");
  std::map<std::string, int> seen;
  std::smatch found;
  for (std::string line; std::getline(readme, line);) {
    if (!std::regex_match(line, found, example)) continue;
    const std::string kind = found[1];
    ++seen[kind];
    const std::string command =
        std::regex_replace(line, std::regex("--store [^ ]*"),
                           "--store '" + Servers::running().fresh(kind, store()) + "'");
    const Finished ran = shell("cd " + path(".") + " && " + command);
    EXPECT_EQ(ran.status, 0) << command << "\n" << ran.err;
    EXPECT_EQ(ran.out, "exported\n");
  }
  EXPECT_EQ(seen.size(), 6u) << "sqlite, postgres, redis, redlock, etcd, zookeeper";
}

}  // namespace
}  // namespace leasehold::cli
