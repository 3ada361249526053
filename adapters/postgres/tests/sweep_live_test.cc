// A free lock in PostgreSQL leaves nothing behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "postgres_under_test.h"
#include "user_connection.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using postgres::UserConnection;

class SweepTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::string psql(const std::string& sql) { return shared_server().psql(sql, server.database()); }
  bool rows() const { return GetParam() == "rows"; }
  std::string table() const { return rows() ? "leasehold.lock" : "leasehold.session_lock"; }
  std::string sweeping() const {
    return rows() ? "SELECT leasehold.sweep()" : "SELECT leasehold.session_sweep()";
  }
  void sweep() { psql(sweeping()); }
  void sweep_at_once() { psql("UPDATE leasehold.meta SET sweep_after = '0'"); }
  std::string names() { return psql("SELECT string_agg(name, ' ' ORDER BY name) FROM " + table()); }

  PostgresUnderTest server{"mode=" + GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Modes, SweepTest, ::testing::Values("rows", "advisory"),
                         [](const auto& it) { return it.param; });

TEST_P(SweepTest, FreeLockIsGoneAMinuteAfterItsEnd) {
  RawStore raw(server.open());
  const RequestId request = new_request();
  const std::int64_t token = raw.token(request);
  EXPECT_EQ(raw.release(request), ReleaseReply::released);
  psql("UPDATE " + table() + " SET freed_at = freed_at - interval '50 s'");
  sweep();
  EXPECT_EQ(names(), "job");
  EXPECT_EQ(raw.release(request), ReleaseReply::released) << "asked again";
  psql("UPDATE " + table() + " SET freed_at = freed_at - interval '11 s'");
  sweep();
  EXPECT_EQ(names(), "");
  const auto status = raw.inspect();
  ASSERT_TRUE(status) << to_string(status.error());
  EXPECT_FALSE(status->last_token);
  EXPECT_EQ(status->counted_to, token);
  EXPECT_GT(raw.token(new_request()), token);
}

TEST_P(SweepTest, HeldAndKeptAndWaitedForLocksStay) {
  RawStore held(server.open(), "held");
  ASSERT_TRUE(held.acquire(new_request()));
  RawStore ended(server.open(), "ended");
  ASSERT_TRUE(ended.acquire(new_request(), 100ms));
  RawStore free(server.open(), "free");
  const RequestId freed = new_request();
  ASSERT_TRUE(free.acquire(freed));
  ASSERT_EQ(free.release(freed), ReleaseReply::released);
  RawStore kept(server.open(), "kept");
  RawStore waited_for(server.open(), "waited for");
  if (rows()) {
    const RequestId keeping = new_request();
    ASSERT_TRUE(kept.acquire(keeping));
    ASSERT_EQ(kept.try_release(keeping, 30s).value(), ReleaseReply::released);
    const RequestId first = new_request();
    ASSERT_TRUE(waited_for.acquire(first));
    ASSERT_TRUE(std::holds_alternative<Queued>(
        waited_for.acquire(new_request(), 30s, /*queue=*/true).value()));
    ASSERT_EQ(waited_for.release(first), ReleaseReply::released);
  }
  RawStore read(server.open(), "read");
  RawStore set(server.open(), "set");
  if (rows()) {
    ASSERT_TRUE(read.acquire_as(Mode::shared(), new_request()));
    ASSERT_TRUE(set.set_permits(3));
  }
  while (ended.inspect()->holder()) std::this_thread::sleep_for(1ms);
  sweep_at_once();
  sweep();
  EXPECT_EQ(names(), rows() ? "held kept read set waited for" : "held");
  if (!rows()) return;
  psql("UPDATE leasehold.waiter SET alive_until = clock_timestamp()");
  sweep();
  EXPECT_EQ(names(), "held kept read set");
  EXPECT_EQ(psql("SELECT count(*) FROM leasehold.waiter"), "0");
  psql("UPDATE leasehold.holder SET expires_at = clock_timestamp()");
  sweep();
  EXPECT_EQ(names(), "held kept set");
  EXPECT_EQ(psql("SELECT count(*) FROM leasehold.holder"), "0");
}

TEST_P(SweepTest, GrantsSweepNowAndThen) {
  Client client(server.open());
  sweep_at_once();
  for (int i = 0; i < 100; ++i) {
    auto lease = client.acquire("lock " + std::to_string(i));
    ASSERT_TRUE(lease) << to_string(lease.error());
    ASSERT_TRUE(lease->release());
  }
  EXPECT_LT(std::stoi(psql("SELECT count(*) FROM " + table())), 40);
}

TEST_P(SweepTest, StepTakesMoreThanWasMadeSinceTheLastOneAlsoOfLongNames) {
  ASSERT_TRUE(Client(server.open()).acquire("made the schema"));
  psql("INSERT INTO " + table() + "(name, freed_at) SELECT i || repeat('x', 500), '-infinity'" +
       " FROM generate_series(1001, 2000) i");
  sweep();
  EXPECT_LT(std::stoi(psql("SELECT count(*) FROM " + table() + " WHERE name LIKE '%x'")),
            1000 - 64);
}

// Both draw from one counter, so that it may always be the other one whose number calls for a step.
TEST_P(SweepTest, LocksOfTheOtherModeAreSweptToo) {
  Client client(server.open());
  ASSERT_TRUE(client.acquire("made the schema"));
  sweep_at_once();
  const std::string other = rows() ? "leasehold.session_lock" : "leasehold.lock";
  psql("INSERT INTO " + other + "(name) VALUES ('old')");
  for (int i = 0; i < 100; ++i) {
    auto lease = client.acquire("job");
    ASSERT_TRUE(lease) << to_string(lease.error());
    ASSERT_TRUE(lease->release());
  }
  EXPECT_EQ(psql("SELECT count(*) FROM " + other), "0");
}

// By another program, which may have any setting.
TEST_P(SweepTest, OnlyReadCommittedTransactionsTakeAndReleaseLocks) {
  ASSERT_TRUE(Client(server.open()).acquire("made the schema"));
  const std::string id = "'" + new_request().hex() + "'";
  const std::vector<std::string> calls =
      rows() ? std::vector<std::string>{"acquire('job', " + id + ", 'me', 1000, false, NULL)",
                                        "release('job', " + id + ", 0, false)"}
             : std::vector<std::string>{"session_grant('job', " + id + ", 'me', 1000, false)",
                                        "session_release('job', " + id + ", false)"};
  for (const std::string& call : calls) {
    const UserConnection user(shared_server().url(server.database()));
    EXPECT_THAT(user.exec("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM leasehold." + call),
                ::testing::HasSubstr("READ COMMITTED"));
  }
}

TEST_P(SweepTest, SchemaThatIsOnlyHalfCopiedGrantsNothing) {
  ASSERT_TRUE(Client(server.open()).acquire("made the schema"));
  psql("DELETE FROM leasehold.meta");
  const UserConnection user(shared_server().url(server.database()));
  const std::string id = "'" + new_request().hex() + "'";
  EXPECT_THAT(user.exec("SELECT * FROM leasehold." +
                        (rows() ? "acquire('job', " + id + ", 'me', 1000, false, NULL)"
                                : "session_grant('job', " + id + ", 'me', 1000, false)")),
              ::testing::HasSubstr("is empty"));
}

TEST_P(SweepTest, RowThatSomebodyUsesIsNotWaitedFor) {
  RawStore raw(server.open());
  sweep_at_once();
  const RequestId request = new_request();
  ASSERT_TRUE(raw.acquire(request));
  ASSERT_EQ(raw.release(request), ReleaseReply::released);
  const UserConnection user(shared_server().url(server.database()));
  ASSERT_EQ(user.exec("BEGIN; SELECT 1 FROM " + table() + " FOR UPDATE"), "");
  psql("SET lock_timeout = '5s'; " + sweeping());
  EXPECT_EQ(names(), "job");
  ASSERT_EQ(user.exec("COMMIT"), "");
  sweep();
  EXPECT_EQ(names(), "");
}

// Each finds the row that the one before it left.
TEST_P(SweepTest, AcquireThatComesLateIsNotGrantedAfterASweep) {
  RawStore raw(server.open());
  const std::vector<RequestId> withdrawn = {new_request(), new_request(), new_request()};
  for (const RequestId& request : withdrawn) {
    EXPECT_EQ(raw.release(request), ReleaseReply::not_held);
  }
  sweep_at_once();
  sweep();
  ASSERT_EQ(names(), "");
  for (const RequestId& request : withdrawn) {
    EXPECT_TRUE(std::holds_alternative<Busy>(raw.acquire(request).value()));
  }
  const RequestId other = new_request();
  EXPECT_TRUE(std::holds_alternative<Granted>(raw.acquire(other).value()));
  EXPECT_EQ(raw.release(other), ReleaseReply::released);
  EXPECT_TRUE(std::holds_alternative<Busy>(raw.acquire(withdrawn[0]).value()));
}

TEST_P(SweepTest, LocksThatComeAndGoStayInOrder) {
  Client client(server.open());
  sweep_at_once();
  std::mutex mutex;
  std::map<std::string, std::int64_t> last;
  std::atomic<bool> over = false;
  std::thread sweeper([&] {
    const UserConnection user(shared_server().url(server.database()));
    while (!over) EXPECT_EQ(user.exec(sweeping()), "");
  });
  std::vector<std::thread> holders;
  for (int i = 0; i < 4; ++i) {
    holders.emplace_back([&, i] {
      for (int turn = 0; turn < 15; ++turn) {
        const std::string lock = "lock " + std::to_string((i + turn) % 3);
        auto lease = client.acquire_fenced(lock, {.wait = 60s});
        ASSERT_TRUE(lease) << to_string(lease.error());
        {
          const std::lock_guard hold(mutex);
          const std::int64_t token = lease->token().number.value();
          EXPECT_GT(token, last[lock]);
          last[lock] = token;
        }
        ASSERT_TRUE(lease->release());
      }
    });
  }
  for (std::thread& holder : holders) holder.join();
  over = true;
  sweeper.join();
}

// A number and a store id that were not valid together would be a token that was never granted.
TEST_P(SweepTest, GrantToldAgainHasTheStoreIdOfThen) {
  RawStore raw(server.open());
  const RequestId request = new_request();
  const auto granted = std::get<Granted>(raw.acquire(request).value());
  const StoreId rotated = Client(server.open()).rotate_store_id().value();
  const auto again = std::get<Granted>(raw.acquire(request).value());
  EXPECT_EQ(again.token, granted.token);
  EXPECT_EQ(again.store, granted.store);
  EXPECT_NE(again.store, rotated);
  RawStore other(server.open(), "other");
  EXPECT_EQ(std::get<Granted>(other.acquire(new_request()).value()).store, rotated);
}

}  // namespace
}  // namespace leasehold::testing
