// What the server behind the URL is: a primary with standbys, a pooler, full, wrong, or not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "postgres_under_test.h"
#include "testing/servers/pgbouncer.h"
#include "testing/servers/redis.h"
#include "testing/worker.h"

namespace leasehold::testing {

// It comes with the workers.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreConformance);

namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

Error refusal(const std::string& url) {
  const auto before = BootClock::now();
  auto opened = open_postgres(url);
  EXPECT_LT(BootClock::now() - before, 30s);
  if (opened) return Error(ErrorCode::internal, "it was opened");
  EXPECT_THAT(to_string(opened.error()), Not(HasSubstr("hunter2")));
  return opened.error();
}

// ---- standbys ------------------------------------------------------------------------------

class StandbyTest : public ::testing::Test {
 protected:
  static PostgresServer& primary() {
    static PostgresServer server(
        {.settings = {"wal_level=replica", "max_wal_senders=5", "hot_standby=on"}});
    return server;
  }
  static PostgresServer& standby() {
    static PostgresServer server({.settings = {"hot_standby=on"}, .standby_of = &primary()});
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

TEST_F(StandbyTest, SynchronousStandbyHasEveryToken) {
  make_synchronous(true);
  Client client(open_postgres(url()).value());
  const auto lease = client.acquire_fenced("job");
  ASSERT_TRUE(lease) << to_string(lease.error());
  EXPECT_EQ(standby().psql("SELECT pg_last_wal_receive_lsn() >= pg_last_wal_replay_lsn()"), "t");
  make_synchronous(false);
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
  const Error error = refusal(standby().url("postgres"));
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_THAT(error.message, HasSubstr("read-only standby"));
  const std::string both =
      "postgres://postgres@" + standby().address() + "," + primary().address() + "/postgres";
  EXPECT_TRUE(open_postgres(both));
}

TEST(FsyncTest, ServerThatDoesNotSyncGivesNoTokens) {
  const PostgresServer careless({.settings = {"fsync=off"}});
  const auto store = open_postgres(careless.url("postgres")).value();
  EXPECT_EQ(store->traits().guarantee, Guarantee::efficiency);
  EXPECT_THAT(store->traits().why, HasSubstr("fsync"));
}

// ---- poolers -------------------------------------------------------------------------------

TEST(PoolerTest, AdvisoryLocksThroughAPoolerAreRefused) {
  for (const std::string mode : {"transaction", "session"}) {
    const Pgbouncer pooler(shared_server(), mode);
    const Error error = refusal(pooler.url("postgres") + "?mode=advisory");
    EXPECT_EQ(error.code, ErrorCode::unsupported) << mode;
    EXPECT_THAT(error.message, HasSubstr("pooler")) << mode;
  }
}

TEST(PoolerTest, RowsWorkThroughAPooler) {
  const Pgbouncer pooler(shared_server());
  const std::string url = pooler.url(shared_server().create_database());
  auto opened = open_postgres(url);
  ASSERT_TRUE(opened) << to_string(opened.error());
  Client client(std::move(*opened));
  int number = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 5; ++turn) {
        auto lease = client.acquire_fenced("job", {.wait = 60s});
        ASSERT_TRUE(lease) << to_string(lease.error());
        ++number;
        ASSERT_TRUE(lease->release());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(number, 40);

  Worker holder = Worker::hold(url, "job", 1s);
  EXPECT_EQ(holder.line(), "asking");
  EXPECT_THAT(holder.line(), ::testing::StartsWith("held"));
  holder.kill();
  EXPECT_TRUE(client.acquire("job", {.wait = 30s}));
}

// ---- wrong input ---------------------------------------------------------------------------

TEST(RefusalTest, WrongPassword) {
  const PostgresServer strict({.access = {"host all alice 127.0.0.1/32 scram-sha-256"}});
  strict.psql("CREATE ROLE alice LOGIN PASSWORD 'right'");
  strict.psql("CREATE DATABASE locks OWNER alice");
  const Error error = refusal("postgres://alice:hunter2@" + strict.address() + "/locks");
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_THAT(error.store_words, HasSubstr("password authentication failed"));
  EXPECT_THAT(error.message, HasSubstr(strict.address()));
  EXPECT_TRUE(open_postgres("postgres://alice:right@" + strict.address() + "/locks"));
}

TEST(RefusalTest, NobodyThere) {
  const Port port = Port::take();
  const Error error = refusal("postgres://u:hunter2@" + port.address() + "/db");
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_THAT(error.message, HasSubstr(port.address()));
  EXPECT_THAT(error.store_words, HasSubstr("refused"));
}

TEST(RefusalTest, UnknownHostAndDatabase) {
  EXPECT_EQ(refusal("postgres://u:hunter2@no-such-host.invalid/db").code, ErrorCode::unavailable);
  const Error error = refusal(shared_server().url("no_such_database"));
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_THAT(error.store_words, HasSubstr("no_such_database"));
}

TEST(RefusalTest, ServerOfAnotherProtocol) {
  const RedisServer redis;
  const Error error = refusal("postgres://u:hunter2@" + redis.address() + "/db");
  EXPECT_EQ(error.code, ErrorCode::unavailable);
}

TEST(RefusalTest, ServerThatSaysRubbishOrNothing) {
  const Port port = Port::take();
  const detail::Fd listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port.number());
  ASSERT_EQ(bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listening.get(), 5), 0);
  const std::string url = "postgres://u:hunter2@" + port.address() + "/db";
  EXPECT_EQ(refusal(url).code, ErrorCode::unavailable) << "silence";

  std::jthread rubbish([&] {
    for (;;) {
      const detail::Fd client(accept(listening.get(), nullptr, nullptr));
      if (!client) return;
      (void)!write(client.get(), "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
    }
  });
  EXPECT_EQ(refusal(url).code, ErrorCode::unavailable) << "rubbish";
  shutdown(listening.get(), SHUT_RDWR);
}

TEST(RefusalTest, EncodingThatCannotHoldAllNames) {
  shared_server().psql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
  const Error error = refusal(shared_server().url("latin"));
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_THAT(error.message, HasSubstr("LATIN1"));
}

// ---- certificates --------------------------------------------------------------------------

TEST(TlsTest, ServerIsVerifiedByNameAndAuthority) {
  TempFolder folder;
  const auto openssl = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "openssl");
    run_program(std::move(words));
  };
  for (const std::string name : {"server", "stranger"}) {
    openssl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:db.example",
             "-keyout", folder.file(name + ".key"), "-out", folder.file(name + ".crt")});
  }
  std::filesystem::permissions(folder.path(), std::filesystem::perms::others_exec,
                               std::filesystem::perm_options::add);
  give_to_postgres_user(folder.file("server.key"));
  const PostgresServer server({.settings = {"ssl=on", "ssl_cert_file=" + folder.file("server.crt"),
                                            "ssl_key_file=" + folder.file("server.key")}});
  const std::string url = server.url("postgres") + "?ca=" + folder.file("server.crt");
  const auto named = open_postgres(url + "&server_name=db.example");
  EXPECT_TRUE(named) << to_string(named.error());

  const Error other_name = refusal(url);
  EXPECT_EQ(other_name.code, ErrorCode::unavailable);
  EXPECT_THAT(other_name.store_words, HasSubstr("certificate"));
  const Error other_authority =
      refusal(server.url("postgres") + "?server_name=db.example&ca=" + folder.file("stranger.crt"));
  EXPECT_THAT(other_authority.store_words, HasSubstr("certificate verify failed"));
  const Error plain = refusal(shared_server().url("postgres") +
                              "?server_name=db.example&ca=" + folder.file("server.crt"));
  EXPECT_THAT(plain.store_words, HasSubstr("does not support SSL"));
}

// ---- a full disk ---------------------------------------------------------------------------

// A small file system of its own; needs root, as the tests have it in their container.
class SmallDisk {
 public:
  SmallDisk() {
    if (mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=120m") != 0) {
      throw std::runtime_error("a small file system cannot be mounted: run this test as root");
    }
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
  }
  ~SmallDisk() { umount2(folder_.path().c_str(), MNT_DETACH); }
  std::string path() const { return folder_.path().string(); }
  std::string filler() const { return folder_.file("filler"); }
  void fill() {
    std::ofstream file(filler(), std::ios::binary);
    const std::string block(4096, 'x');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }

 private:
  TempFolder folder_;
};

TEST(FullDiskTest, NothingIsGrantedThatIsNotWrittenAndItRecovers) {
  SmallDisk disk;
  PostgresServer server({.settings = {"wal_recycle=off", "min_wal_size=32MB", "max_wal_size=48MB"},
                         .data = disk.path() + "/home"});
  Client client(open_postgres(server.url("postgres")).value());
  ASSERT_TRUE(client.acquire_fenced("job")->release());
  disk.fill();
  std::int64_t last = 0;
  std::optional<Error> failure;
  for (int i = 0; i < 20000 && !failure; ++i) {
    auto lease = client.acquire_fenced("job " + std::to_string(i) + std::string(400, 'x'),
                                       {.store_timeout = 2s});
    if (!lease) {
      failure = lease.error();
    } else {
      last = lease->token().number.value();
      (void)lease->release();
    }
  }
  ASSERT_TRUE(failure) << "the disk did not become full";
  EXPECT_THAT(failure->code, AnyOf(ErrorCode::unavailable, ErrorCode::outcome_unknown))
      << to_string(*failure);
  EXPECT_GE(last, 0);
  std::filesystem::remove(disk.filler());
  // Full of log, the server stops by itself and has to be started.
  server.kill();
  server.start();
  auto after = client.acquire_fenced("job", {.wait = 60s, .store_timeout = 30s});
  ASSERT_TRUE(after) << to_string(after.error());
  EXPECT_GE(after->token().number.value(), 2);
}

}  // namespace
}  // namespace leasehold::testing
