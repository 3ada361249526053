#include "leasehold/postgres/outbox.h"

#include <atomic>

#include "test_database.h"

namespace leasehold::testing {
namespace {

using postgres::fence_server;
using postgres::UserConnection;

std::unique_ptr<Outbox> open_outbox(const std::string& url) {
  return postgres::adapters().front().offers.open<Outbox>(Url::parse(url).value()).value();
}

INSTANTIATE_TEST_SUITE_P(Postgres, OutboxConformance, ::testing::Values(MakeOutbox([] {
                           return std::make_unique<SqlOutboxUnderTest<postgres::TestDatabase>>();
                         })));

class PostgresOutbox : public postgres::FenceDatabase {
 protected:
  PostgresOutbox() {
    EXPECT_TRUE(postgres::good(postgres::install_outbox(user_.get())));
    outbox_ = open_outbox(url());
  }

  std::string waiting() const {
    std::string text;
    const auto messages = outbox_->next(100, {});
    EXPECT_TRUE(postgres::good(messages));
    for (const OutboxMessage& message : *messages) {
      text += (text.empty() ? "" : " ") + message.payload;
    }
    return text;
  }
  static std::string put(const std::string& key, const std::string& payload) {
    return postgres::TestDatabase::put(key, payload);
  }

  std::unique_ptr<Outbox> outbox_;
};

// What sequences do: the second takes the higher number and commits first.
TEST_F(PostgresOutbox, TransactionsSideBySideKeepTheOrderOfAKey) {
  const UserConnection first(url());
  const UserConnection second(url());
  ASSERT_EQ(first.exec("BEGIN; " + put("order/1", "first")), "");
  std::atomic<bool> over = false;
  auto later = std::async(std::launch::async, [&] {
    std::string said = second.exec("BEGIN; " + put("order/1", "second") + "; COMMIT");
    over = true;
    return said;
  });
  while (!over && user_.ask("SELECT count(*) FROM pg_stat_activity WHERE datname = "
                            "current_database() AND wait_event_type = 'Lock'") != "1") {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(waiting(), "") << "the second must not be seen before the first";
  ASSERT_EQ(first.exec("COMMIT"), "");
  EXPECT_EQ(later.get(), "");
  EXPECT_EQ(waiting(), "first second");
}

TEST_F(PostgresOutbox, TransactionThatRollsBackLetsTheNextGo) {
  const UserConnection first(url());
  const UserConnection second(url());
  ASSERT_EQ(first.exec("BEGIN; " + put("order/1", "first")), "");
  auto later =
      std::async(std::launch::async, [&] { return second.exec(put("order/1", "second")); });
  await_waiter();
  ASSERT_EQ(first.exec("ROLLBACK"), "");
  EXPECT_EQ(later.get(), "");
  EXPECT_EQ(waiting(), "second");
}

TEST_F(PostgresOutbox, KeysDoNotMeet) {
  const UserConnection first(url());
  ASSERT_EQ(first.exec("BEGIN; " + put("order/1", "first")), "");
  ASSERT_EQ(user_.exec("SET lock_timeout = '10s'"), "");
  EXPECT_EQ(user_.exec(put("order/2", "other")), "");
  EXPECT_EQ(waiting(), "other");
}

TEST_F(PostgresOutbox, RepeatableReadPutsWithoutASerializationFailure) {
  ASSERT_EQ(user_.exec("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1"), "");
  const UserConnection other(url());
  ASSERT_EQ(other.exec(put("order/1", "first")), "");
  EXPECT_EQ(user_.exec(put("order/1", "second") + "; COMMIT"), "");
  EXPECT_EQ(waiting(), "first second");
}

TEST_F(PostgresOutbox, CommitIsDurableWhateverTheSessionWants) {
  ASSERT_EQ(user_.exec("SET synchronous_commit = off; BEGIN; " + put("order/1", "x")), "");
  EXPECT_EQ(user_.ask("SHOW synchronous_commit"), "on");
  ASSERT_EQ(user_.exec("COMMIT"), "");
  EXPECT_EQ(user_.ask("SHOW synchronous_commit"), "off");
}

TEST_F(PostgresOutbox, WhatTheOperatorIsToldIsCommittedDurably) {
  ASSERT_EQ(user_.exec(put("order/1", "x")), "");
  watch_commits("leasehold_outbox.message");
  outbox_ = open_outbox(url());
  const Token token = postgres::token_of(33, '1');
  ASSERT_TRUE(postgres::good(outbox_->enter(token)));
  ASSERT_TRUE(postgres::good(outbox_->failed(token, 1, "no", 1)));
  EXPECT_EQ(commits(), "on") << "failed";
  ASSERT_TRUE(postgres::good(outbox_->retry(1)));
  EXPECT_EQ(commits(), "on") << "retried";
  ASSERT_TRUE(postgres::good(outbox_->failed(token, 1, "no", 1)));
  ASSERT_TRUE(postgres::good(outbox_->skip(1)));
  EXPECT_EQ(commits(), "on") << "skipped";
}

TEST_F(PostgresOutbox, ManyKeysInOneTransactionDoNotFillTheServersTableOfLocks) {
  EXPECT_EQ(user_.exec("SELECT count(leasehold_outbox.put('order/' || i, 'paid', 'x'))"
                       " FROM generate_series(1, 100000) i"),
            "");
}

TEST_F(PostgresOutbox, RoleNeedsNoRightToTheTable) {
  ASSERT_EQ(user_.exec("CREATE ROLE outbox_putter LOGIN"), "");
  ASSERT_EQ(user_.exec("GRANT USAGE ON SCHEMA leasehold_outbox TO outbox_putter"), "");
  {
    const UserConnection putter(fence_server().url(database_, "outbox_putter"));
    EXPECT_EQ(putter.exec(put("order/1", "x")), "");
    EXPECT_THAT(putter.exec("DELETE FROM leasehold_outbox.message"), ::testing::HasSubstr("42501"));
  }
  EXPECT_EQ(waiting(), "x");
  ASSERT_EQ(user_.exec("DROP OWNED BY outbox_putter; DROP ROLE outbox_putter"), "");
}

TEST_F(PostgresOutbox, ZeroByteIsRefused) {
  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_TRUE(
      postgres::bad(postgres::outbox_put(user_.get(), {"a", "t", std::string("x\0y", 3), {}}),
                    ErrorCode::invalid));
  ASSERT_EQ(user_.exec("ROLLBACK"), "");
}

TEST_F(PostgresOutbox, LivesBesideTheLockStore) {
  auto store = postgres::adapters().front().open_store(Url::parse(url()).value(), {});
  ASSERT_TRUE(postgres::good(store)) << "the schema leasehold is there already";
}

}  // namespace
}  // namespace leasehold::testing
