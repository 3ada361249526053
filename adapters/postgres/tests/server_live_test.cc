// What the server behind the URL is: a primary with standbys, a pooler, full, wrong, or not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <thread>

#include "adapters/postgres/rig/pgbouncer.h"
#include "postgres_under_test.h"
#include "rig/certificates.h"
#include "rig/output_of.h"
#include "rig/temp_folder.h"
#include "scripted_postgres.h"
#include "testing/worker.h"

namespace leasehold::testing {

// It comes with the workers.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreConformance);

namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

Error refusal(const std::string& url, const OpenOptions& options = {}) {
  const auto before = BootClock::now();
  auto opened = open_postgres(url, options);
  EXPECT_LT(BootClock::now() - before, 30s);
  if (opened) return Error(ErrorCode::internal, "it was opened");
  EXPECT_THAT(to_string(opened.error()), Not(HasSubstr("hunter2")));
  return opened.error();
}

// Of a server that cannot be used, at this address.
Error unavailable(const std::string& url, const std::string& address,
                  const OpenOptions& options = {}) {
  Error error = refusal(url, options);
  EXPECT_EQ(error.code, ErrorCode::unavailable) << to_string(error);
  EXPECT_THAT(sentence(error), HasSubstr(address));
  return error;
}

// ---- sockets ----------------------------------------------------------------------------------

TEST(SocketTest, IsAHostAsForLibpq) {
  const rig::TempFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  const rig::PostgresServer server(
      {.settings = {"unix_socket_directories=" + folder.path().string()},
       .access = {"local all all trust"}});
  const std::string port = std::to_string(server.port());
  std::string encoded = folder.path().string();
  for (std::size_t at; (at = encoded.find('/')) != std::string::npos;)
    encoded.replace(at, 1, "%2F");
  for (const std::string& url :
       {"postgres://postgres@" + encoded + ":" + port + "/postgres",
        "postgres://postgres@/postgres?host=" + folder.path().string() + "&port=" + port}) {
    const auto opened = open_postgres(url, {});
    EXPECT_TRUE(opened) << url << ": " << (opened ? "" : to_string(opened.error()));
  }
}

// ---- standbys ------------------------------------------------------------------------------

class StandbyTest : public ::testing::Test {
 protected:
  static rig::PostgresServer& primary() {
    static rig::PostgresServer server(
        {.settings = {"wal_level=replica", "max_wal_senders=5", "hot_standby=on"}});
    return server;
  }
  static rig::PostgresServer& standby() {
    static rig::PostgresServer server({.settings = {"hot_standby=on"}, .standby_of = &primary()});
    return server;
  }
  static std::string url(const std::string& more = "") {
    return primary().url("postgres") + "?" + more;
  }
  static void make_synchronous(bool on) {
    primary().psql(std::string("ALTER SYSTEM SET synchronous_standby_names = '") +
                   (on ? "standby" : "") + "'");
    primary().psql("SELECT pg_reload_conf()");
    const std::string wanted = on ? "sync" : "async";
    while (primary().psql("SELECT sync_state FROM pg_stat_replication") != wanted) {
      std::this_thread::sleep_for(10ms);
    }
  }
  void SetUp() override { standby(); }
};

TEST_F(StandbyTest, AsynchronousStandbyMeansNoTokensUnlessFailoverIsNone) {
  make_synchronous(false);
  for (const std::string mode : {"mode=rows", "mode=advisory"}) {
    Client careful(open_postgres(url(mode)).value());
    const auto refused = careful.acquire_fenced("job");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unsafe_for_correctness);
    EXPECT_THAT(refused.error().message, HasSubstr("a standby that it does not wait for"));
    EXPECT_THAT(refused.error().message, HasSubstr("failover=none"));
    EXPECT_TRUE(careful.acquire("job"));
    Client sure(open_postgres(url(mode + "&failover=none")).value());
    EXPECT_TRUE(sure.acquire_fenced("another"));
  }
}

TEST_F(StandbyTest, RoleThatCannotSeeTheStandbysStateIsNotTrusted) {
  make_synchronous(true);
  open_postgres(url()).value();
  primary().psql("DROP ROLE IF EXISTS guest");
  primary().psql("CREATE ROLE guest LOGIN");
  primary().psql("GRANT USAGE ON SCHEMA leasehold TO guest");
  primary().psql("GRANT ALL ON ALL TABLES IN SCHEMA leasehold TO guest");
  const auto store = open_postgres(primary().url("postgres", "guest")).value();
  EXPECT_EQ(store->traits().guarantee, Guarantee::efficiency);
  EXPECT_THAT(store->traits().why, HasSubstr("pg_monitor"));
  primary().psql("GRANT pg_monitor TO guest");
  const auto seeing = open_postgres(primary().url("postgres", "guest")).value();
  EXPECT_EQ(seeing->traits().guarantee, Guarantee::correctness);
  make_synchronous(false);
}

TEST_F(StandbyTest, StandbyAloneIsRefusedAndThePrimaryIsFoundAmongHosts) {
  const Error error = unavailable(standby().url("postgres"), standby().address());
  EXPECT_THAT(error.message, HasSubstr("read-only standby"));
  EXPECT_THAT(error.store_words, HasSubstr("session is read-only"));
  const std::string both =
      "postgres://postgres@" + standby().address() + "," + primary().address() + "/postgres";
  EXPECT_TRUE(open_postgres(both));
}

// Servers of its own: one of them ends here.
class FailoverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    while (primary.psql("SELECT sync_state FROM pg_stat_replication") != "sync") {
      std::this_thread::sleep_for(10ms);
    }
  }

  rig::PostgresServer primary{{.settings = {"synchronous_standby_names=standby"}}};
  rig::PostgresServer standby{{.standby_of = &primary}};
};

TEST_F(FailoverTest, SynchronousStandbyHasEveryToken) {
  const std::string url = primary.url("postgres");
  RawStore rows(open_postgres(url).value());
  RawStore sessions(open_postgres(url + "?mode=advisory").value());
  ASSERT_EQ(rows.traits().guarantee, Guarantee::correctness);
  ASSERT_EQ(sessions.traits().guarantee, Guarantee::correctness);
  standby.freeze();
  for (const std::string mode : {"", "?mode=advisory"}) {
    RawStore hasty(open_postgres(url + mode).value(), "unconfirmed", 1s);
    const auto unconfirmed = hasty.acquire(new_request());
    ASSERT_FALSE(unconfirmed) << "the standby does not have it yet";
    EXPECT_EQ(unconfirmed.error().code, ErrorCode::outcome_unknown);
  }
  standby.thaw();

  std::vector<std::int64_t> last;
  for (RawStore* store : {&rows, &sessions}) {
    const RequestId before = new_request();
    ASSERT_TRUE(store->acquire(before));
    ASSERT_EQ(store->release(before), ReleaseReply::released);
    last.push_back(std::get<Granted>(store->acquire(new_request(), 2s).value()).token.value());
  }
  primary.kill();
  // It has applied all that it has when it takes over.
  ASSERT_EQ(standby.psql("SELECT pg_promote()"), "t");
  EXPECT_EQ(standby.psql("SELECT token FROM leasehold.lock WHERE name = 'job'"),
            std::to_string(last[0]));
  EXPECT_EQ(standby.psql("SELECT token FROM leasehold.session_lock WHERE name = 'job'"),
            std::to_string(last[1]));
  for (const std::string mode : {"", "?mode=advisory"}) {
    Client client(open_postgres(standby.url("postgres") + mode).value());
    const auto next = client.acquire_fenced("job", {.wait = 30s});
    ASSERT_TRUE(next) << to_string(next.error());
    EXPECT_GT(next->token().number.value(), last[1]);
  }
}

TEST_F(FailoverTest, PrimaryThatIsKilledUnderLoadHasGivenNoTokenThatTheStandbyGivesAgain) {
  struct Load {
    std::string lock;
    std::string options;
    leasehold::Mode mode = {};
    std::atomic<std::int64_t> last = 0;
  };
  std::array<Load, 6> loads = {{{"lock 1", "?mode=rows"},
                                {"lock 2", "?mode=rows"},
                                {"lock 3", "?mode=rows", leasehold::Mode::shared()},
                                {"lock 4", "?mode=rows", leasehold::Mode::permit_of(2)},
                                {"lock 5", "?mode=advisory"},
                                {"lock 6", "?mode=advisory"}}};
  std::atomic<std::size_t> grants = 0;
  std::vector<std::thread> threads;
  for (Load& it : loads) {
    threads.emplace_back([&, url = primary.url("postgres") + it.options] {
      RawStore store(open_postgres(url).value(), it.lock, 30s);
      for (;;) {
        const RequestId request = new_request();
        const auto reply = store.acquire_as(it.mode, request);
        if (!reply) return;  // it is dead
        it.last = std::get<Granted>(*reply).token.value();
        ++grants;
        if (!store.try_release(request)) return;
      }
    });
  }
  while (grants < 200) std::this_thread::sleep_for(1ms);
  // The primary has commits now that the standby will never see. Nobody is told of them.
  standby.kill();
  const std::size_t before = grants;
  while (grants < before + 200 &&
         primary.psql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                      " AND backend_type = 'client backend'") != std::to_string(loads.size())) {
  }
  primary.kill();
  for (std::thread& it : threads) it.join();
  standby.start();
  ASSERT_EQ(standby.psql("SELECT pg_promote()"), "t");
  std::int64_t last = 0;
  for (const Load& it : loads) {
    const std::string table = it.options == "?mode=rows" ? "lock" : "session_lock";
    if (it.mode.is_exclusive()) {
      const std::string told =
          standby.psql("SELECT token FROM leasehold." + table + " WHERE name = '" + it.lock + "'");
      EXPECT_GE(std::stoll(told), it.last) << it.lock;
    }
    last = std::max(last, it.last.load());
  }
  for (const Load& it : loads) {
    RawStore store(open_postgres(standby.url("postgres") + it.options).value(), it.lock);
    ASSERT_TRUE(store.traits().guarantee == Guarantee::correctness);
    const auto holder = store.inspect().value().holder();
    if (holder) ASSERT_TRUE(store.force_release(holder->request));
    const auto reply = store.acquire_as(it.mode, new_request());
    ASSERT_TRUE(reply) << to_string(reply.error());
    ASSERT_TRUE(std::holds_alternative<Granted>(*reply)) << it.lock;
    EXPECT_GT(std::get<Granted>(*reply).token.value(), last) << it.lock;
  }
}

TEST(FsyncTest, ServerThatDoesNotSyncGivesNoTokens) {
  const rig::PostgresServer careless({.settings = {"fsync=off"}});
  const auto store = open_postgres(careless.url("postgres")).value();
  EXPECT_EQ(store->traits().guarantee, Guarantee::efficiency);
  EXPECT_THAT(store->traits().why, HasSubstr("fsync"));
  EXPECT_THAT(store->traits().instead, AllOf(HasSubstr("fsync"), Not(HasSubstr("failover"))));
}

// ---- poolers -------------------------------------------------------------------------------

TEST(PoolerTest, AdvisoryLocksThroughAPoolerAreRefused) {
  for (const std::string mode : {"transaction", "session"}) {
    const rig::Pgbouncer pooler(shared_server(), mode);
    const Error error = refusal(pooler.url("postgres") + "?mode=advisory");
    EXPECT_EQ(error.code, ErrorCode::unsupported) << mode;
    EXPECT_THAT(error.message, HasSubstr("pooler")) << mode;
  }
}

TEST(PoolerTest, RowsWorkThroughAPooler) {
  const rig::Pgbouncer pooler(shared_server());
  const std::string url = pooler.url(shared_server().create_database());
  auto opened = open_postgres(url);
  ASSERT_TRUE(opened) << to_string(opened.error());
  Client client(std::move(*opened));
  expect_threads_exclude_each_other(client, 8, 5);
  EXPECT_TRUE(client.acquire_fenced("job"));

  Worker holder = Worker::hold(url, "job", 1s);
  EXPECT_EQ(holder.line(), "asking");
  EXPECT_THAT(holder.line(), ::testing::StartsWith("held"));
  holder.kill();
  EXPECT_TRUE(client.acquire("job", {.wait = 30s}));
}

// ---- wrong input ---------------------------------------------------------------------------

TEST(RefusalTest, WrongPassword) {
  const rig::PostgresServer strict({.access = {"host all alice 127.0.0.1/32 scram-sha-256"}});
  strict.psql("CREATE ROLE alice LOGIN PASSWORD 'right'");
  strict.psql("CREATE DATABASE locks OWNER alice");
  const Error error =
      unavailable("postgres://alice:hunter2@" + strict.address() + "/locks", strict.address());
  EXPECT_THAT(error.store_words, HasSubstr("password authentication failed"));
  EXPECT_TRUE(open_postgres("postgres://alice:right@" + strict.address() + "/locks"));
}

TEST(RefusalTest, NobodyThere) {
  const rig::Port port = rig::Port::take();
  const Error error = unavailable("postgres://u:hunter2@" + port.address() + "/db", port.address());
  EXPECT_THAT(error.store_words, HasSubstr("refused"));
}

TEST(RefusalTest, UnknownHostAndDatabase) {
  const Error host =
      unavailable("postgres://u:hunter2@no-such-host.invalid/db", "no-such-host.invalid");
  EXPECT_THAT(host.store_words, HasSubstr("could not translate host name"));
  const Error database =
      unavailable(shared_server().url("no_such_database"), shared_server().address());
  EXPECT_THAT(database.store_words, HasSubstr("database \"no_such_database\" does not exist"));
}

OpenOptions hasty() {
  OpenOptions options;
  options.store_timeout = 500ms;
  return options;
}

// A Redis server waits for the end of the line.
TEST(RefusalTest, ServerOfAnotherProtocol) {
  const rig::Port port = rig::Port::take();
  const rig::TempFolder folder;
  const rig::ServerProcess redis(
      {.argv = {"redis-server", "--bind", "127.0.0.1", "--port", port.str(), "--save", ""},
       .log = folder.file("log"),
       .answers = [&] { return rig::accepts(port.number()); }});
  const Error error =
      unavailable("postgres://u:hunter2@" + port.address() + "/db", port.address(), hasty());
  EXPECT_THAT(error.message, HasSubstr("is no PostgreSQL server"));
}

TEST(RefusalTest, ServerThatIsTooOld) {
  const ScriptedServer old([](int fd) { wire::be_postgres(fd, "12.22"); });
  for (const std::string mode : {"rows", "advisory"}) {
    const Error error = unavailable(
        "postgres://u:hunter2@" + old.address() + "/db?tls=off&mode=" + mode, old.address());
    EXPECT_THAT(error.message, HasSubstr("the server is PostgreSQL 12; Leasehold needs 14"));
  }
}

TEST(RefusalTest, ServerThatSaysNothing) {
  const ScriptedServer silent(wire::only_listen);
  for (const std::string tls : {"?", "?tls=off"}) {
    const Error error = unavailable("postgres://u:hunter2@" + silent.address() + "/db" + tls,
                                    silent.address(), hasty());
    EXPECT_THAT(error.message, HasSubstr("accepted the connection, but no session began"));
  }
}

TEST(RefusalTest, ServerThatSaysRubbish) {
  const ScriptedServer web([](int fd) { wire::say(fd, "HTTP/1.1 400 Bad Request\r\n\r\n"); });
  const std::string url = "postgres://u:hunter2@" + web.address() + "/db";
  EXPECT_THAT(unavailable(url, web.address()).store_words,
              HasSubstr("invalid response to SSL negotiation: H"));
  EXPECT_THAT(unavailable(url + "?tls=off", web.address()).store_words,
              HasSubstr("expected authentication request from server, but received H"));
}

TEST(RefusalTest, EncodingThatCannotHoldAllNames) {
  shared_server().psql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
  const Error error = refusal(shared_server().url("latin"));
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_THAT(error.message, HasSubstr("LATIN1"));
  shared_server().drop_database("latin");
}

// ---- certificates --------------------------------------------------------------------------

// Certificates that stand for themselves.
class Certificates {
 public:
  void make(const std::string& name) {
    rig::make_certificate(folder_, name, "subjectAltName=DNS:db.example");
  }
  std::string of(const std::string& name) const { return folder_.file(name + ".crt"); }
  std::string key(const std::string& name) const { return folder_.file(name + ".key"); }
  // Settings of a server that has the certificate "server".
  std::vector<std::string> of_server() {
    make("server");
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::others_exec,
                                 std::filesystem::perm_options::add);
    rig::give_to_postgres_user(key("server"));
    return {"ssl=on", "ssl_cert_file=" + of("server"), "ssl_key_file=" + key("server")};
  }

 private:
  rig::TempFolder folder_;
};

TEST(TlsTest, ServerIsVerifiedByNameAndAuthority) {
  Certificates certificates;
  const rig::PostgresServer server({.settings = certificates.of_server()});
  certificates.make("stranger");
  const std::string plain_url = "postgres://postgres:hunter2@" + server.address() + "/postgres";
  const std::string url = plain_url + "?ca=" + certificates.of("server");
  const auto named = open_postgres(url + "&server_name=db.example");
  EXPECT_TRUE(named) << to_string(named.error());

  const Error other_name = unavailable(url, server.address());
  EXPECT_THAT(other_name.store_words, HasSubstr("server certificate for \"db.example\""));
  const Error other_authority = unavailable(
      plain_url + "?server_name=db.example&ca=" + certificates.of("stranger"), server.address());
  EXPECT_THAT(other_authority.store_words, HasSubstr("certificate verify failed"));
  const Error plain = unavailable(
      shared_server().url("postgres") + "?server_name=db.example&ca=" + certificates.of("server"),
      shared_server().address());
  EXPECT_THAT(plain.store_words, HasSubstr("does not support SSL"));
}

TEST(TlsTest, ClientIsVerifiedByNameAndAuthority) {
  Certificates certificates;
  for (const std::string name : {"alice", "bob", "stranger"}) certificates.make(name);
  // Both are the server's authorities.
  const std::string known = certificates.of("known");
  rig::output_of({"sh", "-c", "cat \"$1\" \"$2\" > \"$3\"", "sh", certificates.of("alice"),
                  certificates.of("bob"), known});
  std::vector<std::string> settings = certificates.of_server();
  settings.push_back("ssl_ca_file=" + known);
  const rig::PostgresServer server(
      {.settings = settings,
       .access = {"hostssl all alice 127.0.0.1/32 trust clientcert=verify-full",
                  "hostnossl all alice 127.0.0.1/32 reject"}});
  server.psql("CREATE ROLE alice LOGIN");
  server.psql("CREATE DATABASE locks OWNER alice");
  const std::string url = "postgres://alice:hunter2@" + server.address() +
                          "/locks?server_name=db.example&ca=" + certificates.of("server");
  const auto with_certificate = [&](const std::string& name) {
    return url + "&cert=" + certificates.of(name) + "&key=" + certificates.key(name);
  };
  auto opened = open_postgres(with_certificate("alice"));
  ASSERT_TRUE(opened) << to_string(opened.error());
  EXPECT_TRUE(Client(std::move(*opened)).acquire_fenced("job"));

  const Error none = unavailable(url, server.address());
  EXPECT_THAT(none.store_words, HasSubstr("connection requires a valid client certificate"));
  const Error another = unavailable(with_certificate("bob"), server.address());
  EXPECT_THAT(another.store_words, HasSubstr("authentication failed for user \"alice\""));
  const Error unknown = unavailable(with_certificate("stranger"), server.address());
  // The server leaves with these words, which its leaving may overtake.
  EXPECT_THAT(unknown.store_words,
              AnyOf(HasSubstr("unknown ca"), HasSubstr("server closed the connection"),
                    HasSubstr("Connection reset"), HasSubstr("Broken pipe")));
}

}  // namespace
}  // namespace leasehold::testing
