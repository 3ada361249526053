// The one counter of a store in PostgreSQL: what keeps its tokens in order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <thread>

#include "postgres_under_test.h"
#include "rig/output_of.h"
#include "user_connection.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using postgres::UserConnection;
using ::testing::Ge;
using ::testing::Gt;

class CounterTest : public ::testing::Test {
 protected:
  std::string psql(const std::string& sql) { return shared_server().psql(sql, server.database()); }
  std::int64_t number(const std::string& sql) { return std::stoll(psql(sql)); }
  std::int64_t ceiling() { return number("SELECT token_ceiling FROM leasehold.meta"); }
  std::string plain_url() { return shared_server().url(server.database()); }
  void draw_from(std::int64_t last) {
    psql("SELECT setval('leasehold.token', " + std::to_string(last) + ")");
  }
  static std::int64_t take_and_release(RawStore& raw) {
    const RequestId request = new_request();
    const std::int64_t token = raw.token(request);
    EXPECT_EQ(raw.release(request), ReleaseReply::released);
    return token;
  }

  PostgresUnderTest server{"mode=rows"};
};

std::string acquire_sql(const std::string& ttl_ms, const std::string& lock = "job") {
  return "SELECT o_token FROM leasehold.acquire('" + lock + "', gen_random_uuid(), 'me', " +
         ttl_ms + ", false, NULL)";
}

// What holders of a few locks have seen, each while it held its lock.
class SeenTokens {
 public:
  void granted(const std::string& lock, std::int64_t token) {
    const std::lock_guard hold(mutex_);
    EXPECT_GT(token, last_[lock]) << lock;
    last_[lock] = token;
    EXPECT_TRUE(all_.insert(token).second) << "twice: " << token;
  }
  std::size_t count() {
    const std::lock_guard hold(mutex_);
    return all_.size();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::int64_t> last_;
  std::set<std::int64_t> all_;
};

// ---- order ---------------------------------------------------------------------------------

TEST_F(CounterTest, TokensRiseInTheOrderOfTheGrants) {
  Client client(server.open());
  SeenTokens seen;
  std::vector<std::thread> holders;
  for (int i = 0; i < 8; ++i) {
    holders.emplace_back([&, i] {
      for (int turn = 0; turn < 20; ++turn) {
        const std::string lock = "lock " + std::to_string((i + turn) % 3);
        auto lease = client.acquire_fenced(lock, {.wait = 60s});
        ASSERT_TRUE(lease) << to_string(lease.error());
        seen.granted(lock, lease->token().number.value());
        ASSERT_TRUE(lease->release());
      }
    });
  }
  for (std::thread& holder : holders) holder.join();
  EXPECT_EQ(seen.count(), 160u);
}

// The late one has read the row, and drawn a number perhaps, before the other draws its own.
TEST_F(CounterTest, AcquireThatWaitedForTheRowHasTheLargerToken) {
  RawStore raw(server.open());
  take_and_release(raw);
  const UserConnection early(plain_url());
  const UserConnection late(plain_url());
  ASSERT_EQ(early.exec("BEGIN; SELECT 1 FROM leasehold.lock WHERE name = 'job' FOR UPDATE"), "");
  auto waiting = std::async(std::launch::async, [&] { return late.ask(acquire_sql("30000")); });
  while (psql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
              " AND wait_event_type = 'Lock'") != "1") {
    ASSERT_EQ(waiting.wait_for(5ms), std::future_status::timeout) << "it did not wait";
  }
  const std::int64_t first = std::stoll(early.ask(acquire_sql("100")));
  ASSERT_EQ(early.exec("SELECT pg_sleep(0.2)"), "");
  ASSERT_EQ(early.exec("COMMIT"), "");
  EXPECT_GT(std::stoll(waiting.get()), first);
}

// ---- the death of the server ---------------------------------------------------------------

TEST_F(CounterTest, KilledServerNeverGivesATokenAgain) {
  Client client(server.open());
  SeenTokens seen;
  std::atomic<bool> over = false;
  std::vector<std::thread> holders;
  for (int i = 0; i < 4; ++i) {
    holders.emplace_back([&, lock = "lock " + std::to_string(i % 2)] {
      while (!over) {
        auto lease = client.acquire_fenced(lock, {.ttl = 1s, .wait = 1s, .store_timeout = 1s});
        if (lease) seen.granted(lock, lease->token().number.value());
      }
    });
  }
  for (int life = 0; life < 3; ++life) {
    const std::size_t before = seen.count();
    while (seen.count() < before + 20) std::this_thread::sleep_for(1ms);
    server.restart();
  }
  const std::size_t before = seen.count();
  while (seen.count() < before + 20) std::this_thread::sleep_for(1ms);
  over = true;
  for (std::thread& holder : holders) holder.join();
}

// ---- the ceiling ---------------------------------------------------------------------------

TEST_F(CounterTest, CeilingIsAboveEveryToken) {
  RawStore raw(server.open());
  EXPECT_EQ(take_and_release(raw), 1);
  for (const std::int64_t drawn : {4998, 9999, 14998, 30000}) {
    draw_from(drawn);
    for (int i = 1; i < 4; ++i) {
      EXPECT_EQ(take_and_release(raw), drawn + i);
      EXPECT_THAT(ceiling(), Ge(drawn + i));
    }
  }
}

TEST_F(CounterTest, NobodyWaitsForTheCeilingUnlessItIsReached) {
  RawStore raw(server.open(), "job", 2s);
  take_and_release(raw);
  const UserConnection raising(plain_url());
  ASSERT_EQ(raising.exec("BEGIN; SELECT 1 FROM leasehold.meta FOR UPDATE"), "");
  draw_from(7000);
  EXPECT_EQ(take_and_release(raw), 7001);
  draw_from(10000);
  EXPECT_FALSE(raw.acquire(new_request())) << "above what a copy of the tables would know";
  ASSERT_EQ(raising.exec("ROLLBACK"), "");
  RawStore later(server.open(), "later");
  EXPECT_THAT(take_and_release(later), Gt(10001));
}

// ---- a counter that has gone back ------------------------------------------------------------

TEST_F(CounterTest, SequenceThatBeganAnewIsNoticedByTheNextGrant) {
  RawStore raw(server.open());
  RawStore other(server.open(), "other");
  std::int64_t last = 0;
  for (int turn = 0; turn < 3; ++turn) {
    for (RawStore* store : {&raw, &other}) last = take_and_release(*store);
    psql("ALTER SEQUENCE leasehold.token RESTART");
    EXPECT_THAT(raw.inspect()->counted_to.value(), Ge(last));
    const std::int64_t next = take_and_release(raw);
    EXPECT_GT(next, last);
    EXPECT_GT(take_and_release(other), next);
  }
  draw_from(1);
  EXPECT_GT(take_and_release(other), last);
}

TEST_F(CounterTest, GrantsThatNoticeItTogetherGetDifferentTokens) {
  Client client(server.open());
  SeenTokens seen;
  for (int turn = 0; turn < 5; ++turn) {
    psql("ALTER SEQUENCE leasehold.token RESTART");
    std::vector<std::thread> holders;
    for (int i = 0; i < 8; ++i) {
      holders.emplace_back([&, lock = "lock " + std::to_string(i)] {
        auto lease = client.acquire_fenced(lock, {.wait = 60s});
        ASSERT_TRUE(lease) << to_string(lease.error());
        seen.granted(lock, lease->token().number.value());
      });
    }
    for (std::thread& holder : holders) holder.join();
  }
  EXPECT_EQ(seen.count(), 40u);
}

// Logical replication copies the tables, and no sequence; programs that were there go on.
class SwitchoverTest : public ::testing::Test {
 protected:
  // From here on the copy streams.
  void subscribe() {
    before.psql("CREATE PUBLICATION all_tables FOR ALL TABLES");
    rig::output_of({"sh", "-c", "pg_dump --schema-only --schema=leasehold \"$1\" | psql -q \"$2\"",
                    "sh", before.url("postgres"), after.url("postgres")});
    after.psql("CREATE SUBSCRIPTION copy CONNECTION '" + before.url("postgres") +
               "' PUBLICATION all_tables");
    wait_for(after, "SELECT count(*) > 0 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel");
  }
  // Nobody takes a lock on the old server any more, and the new one has all that was.
  void switch_over() {
    const std::string end = before.psql("SELECT pg_current_wal_lsn()");
    wait_for(before, "SELECT confirmed_flush_lsn >= '" + end + "' FROM pg_replication_slots");
    ASSERT_EQ(after.psql("SELECT last_value FROM leasehold.token"), "1");
    after.psql("DROP SUBSCRIPTION copy");
  }
  static void wait_for(rig::PostgresServer& server, const std::string& question) {
    while (server.psql(question) != "t") std::this_thread::sleep_for(5ms);
  }

  rig::PostgresServer before{{.settings = {"wal_level=logical"}}};
  rig::PostgresServer after;
};

TEST_F(SwitchoverTest, NewServerBeginsAboveEveryTokenOfTheOldOne) {
  RawStore rows(open_postgres(before.url("postgres")).value());
  RawStore sessions(open_postgres(before.url("postgres") + "?mode=advisory").value());
  std::int64_t last = 0;
  for (RawStore* store : {&rows, &sessions}) {
    const RequestId request = new_request();
    last = store->token(request);
    store->release(request);
  }
  // So no row of a lock tells how far it was counted.
  before.psql("UPDATE leasehold.meta SET sweep_after = '0'");
  before.psql("SELECT leasehold.sweep(), leasehold.session_sweep()");
  ASSERT_EQ(before.psql("SELECT (SELECT count(*) FROM leasehold.lock)"
                        " + (SELECT count(*) FROM leasehold.session_lock)"),
            "0");
  subscribe();
  switch_over();

  EXPECT_THAT(std::stoll(after.psql("SELECT o_counted_to FROM leasehold.status('job')")), Ge(last));
  const std::int64_t next = std::stoll(after.psql(acquire_sql("30000")));
  EXPECT_GT(next, last);
  RawStore new_rows(open_postgres(after.url("postgres")).value(), "another");
  RawStore new_sessions(open_postgres(after.url("postgres") + "?mode=advisory").value());
  EXPECT_GT(new_rows.token(new_request()), next);
  EXPECT_GT(new_sessions.token(new_request()), next);
}

// The ceiling that was copied first is below the last tokens.
TEST_F(SwitchoverTest, TokensTakenWhileTheCopyStreamsAreBelowThoseOfTheNewServer) {
  RawStore rows(open_postgres(before.url("postgres")).value());
  RawStore sessions(open_postgres(before.url("postgres") + "?mode=advisory").value());
  RawStore readers(open_postgres(before.url("postgres")).value(), "read");
  ASSERT_TRUE(rows.acquire(new_request(), 100ms));  // made the schema
  const std::int64_t first_ceiling =
      std::stoll(before.psql("SELECT token_ceiling FROM leasehold.meta"));
  subscribe();
  std::int64_t last = 0;
  for (int raises = 0; raises < 3; ++raises) {
    // The next token but two is the first in the upper half of its block.
    before.psql("SELECT setval('leasehold.token', token_ceiling - 5002) FROM leasehold.meta");
    for (RawStore* store : {&rows, &sessions, &rows, &sessions, &rows, &sessions}) {
      const RequestId request = new_request();
      last = store->token(request);
      store->release(request);
    }
  }
  ASSERT_GT(last, first_ceiling);
  const RequestId reader = new_request();
  const auto read = readers.acquire_as(Mode::shared(), reader, false, 10min).value();
  last = std::max(last, std::get<Granted>(read).token.value());
  // So no row of a free lock tells how far it was counted.
  before.psql("UPDATE leasehold.meta SET sweep_after = '0'");
  before.psql("SELECT leasehold.sweep(), leasehold.session_sweep()");
  switch_over();

  RawStore new_readers(open_postgres(after.url("postgres")).value(), "read");
  EXPECT_TRUE(std::holds_alternative<Busy>(new_readers.acquire(new_request()).value()))
      << "the reader came along";
  for (const Mode mode : {Mode::shared(), Mode::permit_of(2), Mode::exclusive()}) {
    RawStore store(open_postgres(after.url("postgres")).value(), to_string(mode));
    const auto granted = store.acquire_as(mode, new_request()).value();
    EXPECT_GT(std::get<Granted>(granted).token.value(), last) << to_string(mode);
  }
  RawStore new_sessions(open_postgres(after.url("postgres") + "?mode=advisory").value());
  EXPECT_GT(new_sessions.token(new_request()), last);
}

}  // namespace
}  // namespace leasehold::testing
