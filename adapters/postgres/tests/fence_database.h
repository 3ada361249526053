// A database with the fence and a table of the user's, for each test case.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "adapters/postgres/rig/server.h"
#include "leasehold/postgres/fence.h"
#include "user_connection.h"

namespace leasehold::postgres {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Starts with the first use, and ends with the program.
inline leasehold::rig::PostgresServer& fence_server() {
  // wal_writer_delay: what is not committed durably is not on disk soon by itself.
  static leasehold::rig::PostgresServer server(
      {.settings = {"max_prepared_transactions=10", "wal_writer_delay=10s"}});
  return server;
}

// Returns when a session of this connection's database waits for a lock.
inline void await_waiter(const UserConnection& watch) {
  while (watch.ask("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                   " AND wait_event_type = 'Lock'") != "1") {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

class FenceDatabase : public ::testing::Test {
 protected:
  FenceDatabase() {
    EXPECT_EQ(user_.exec("CREATE TABLE data(value text)"), "");
    EXPECT_TRUE(good(install_fence(user_.get())));
  }
  ~FenceDatabase() override { fence_server().drop_database(database_); }

  std::string url() const { return fence_server().url(database_); }
  static ResourceName ledger() { return ResourceName::parse("ledger").value(); }
  Fence fence() const { return Fence::open(user_.get(), ledger()).value(); }
  static Fence fence_of(const UserConnection& user) {
    return Fence::open(user.get(), ledger()).value();
  }

  // The entry as plain SQL; every value is written as SQL.
  static std::string enter(const std::string& token, const std::string& resource = "'ledger'",
                           const std::string& request = "'" + std::string(32, '1') + "'",
                           const std::string& lineage = "'" + std::string(32, 'a') +
                                                        "/invoice/1234'") {
    return "SELECT leasehold_fence.enter(" + resource + ", " + token + ", " + lineage + ", " +
           request + ")";
  }

  std::string rows() const { return user_.ask("SELECT count(*) FROM data"); }
  std::string mark() const {
    return user_.ask("SELECT token FROM leasehold_fence.marks() WHERE resource = 'ledger'");
  }
  std::string refused() const {
    return user_.ask("SELECT refused FROM leasehold_fence.marks() WHERE resource = 'ledger'");
  }

  // Returns when a session of this database waits for a lock.
  void await_waiter() const { postgres::await_waiter(user_); }
  // The same, while the user's own connection is in use.
  void await_waiter_elsewhere() const { postgres::await_waiter(UserConnection(url())); }

  // From now on, and without durable commits by default: notes what synchronous_commit is when a
  // change of the table is committed.
  void watch_commits(const std::string& table) const {
    ASSERT_EQ(user_.exec("CREATE TABLE IF NOT EXISTS commits(setting text);"
                         "CREATE OR REPLACE FUNCTION note_commit() RETURNS trigger LANGUAGE plpgsql"
                         " AS $$BEGIN INSERT INTO public.commits"
                         " VALUES (current_setting('synchronous_commit')); RETURN NULL; END$$;"
                         "CREATE CONSTRAINT TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON " +
                         table +
                         " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION"
                         " note_commit();"
                         "ALTER DATABASE " +
                         database_ +
                         " SET synchronous_commit = off;"
                         "SET synchronous_commit = off"),
              "");
  }
  // What was noted since the last call, each once; "" if nothing.
  std::string commits() const {
    return user_.ask(
        "WITH gone AS (DELETE FROM commits RETURNING setting)"
        " SELECT string_agg(DISTINCT setting, ' ') FROM gone");
  }

  const std::string database_ = fence_server().create_database();
  const UserConnection user_{url()};
};

// A work that inserts one row.
inline Status insert_row(OpenTransaction& open) {
  const std::string words = exec_on(open.handle(), "INSERT INTO data VALUES('x')");
  if (words.empty()) return {};
  return fail(ErrorCode::unavailable, "the insert failed", words);
}

inline Status nothing(OpenTransaction&) {
  return {};
}

}  // namespace leasehold::postgres
