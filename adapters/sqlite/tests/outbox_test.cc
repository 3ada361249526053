#include "leasehold/sqlite/outbox.h"

#include "leasehold/sqlite/adapter.h"
#include "leasehold/sqlite/fence.h"
#include "testing/outbox_conformance.h"
#include "user_database.h"

namespace leasehold::testing {
namespace {

using sqlite::good;
using sqlite::UserConnection;

class SqliteOutboxUnderTest final : public OutboxUnderTest {
 public:
  SqliteOutboxUnderTest() {
    EXPECT_EQ(UserConnection(path()).exec("CREATE TABLE work(x); PRAGMA journal_mode = WAL"), "");
  }

  std::unique_ptr<Outbox> open() override {
    return sqlite::adapters()
        .front()
        .offers.open<Outbox>(Url::parse("sqlite:" + path()).value())
        .value();
  }

  Status put(const std::vector<OutboxEntry>& entries, bool commit) override {
    const UserConnection user(path());
    EXPECT_EQ(user.exec("BEGIN IMMEDIATE; INSERT INTO work VALUES(1)"), "");
    for (const OutboxEntry& entry : entries) {
      auto id = sqlite::outbox_put(user.get(), entry);
      if (!id) return fail(std::move(id.error()));
    }
    EXPECT_EQ(user.exec(commit ? "COMMIT" : "ROLLBACK"), "");
    return {};
  }
  Status put_alone(const OutboxEntry& entry) override {
    const UserConnection user(path());
    auto id = sqlite::outbox_put(user.get(), entry);
    if (!id) return fail(std::move(id.error()));
    return {};
  }
  std::string put_by_sql(const std::string& key, const std::string& payload) override {
    return UserConnection(path()).exec(
        "INSERT INTO leasehold_outbox(key, topic, payload) VALUES('" + key + "', 'paid', '" +
        payload + "')");
  }
  std::string deliver_all_by_sql() override {
    return UserConnection(path()).exec("UPDATE leasehold_outbox SET done_at = put_at");
  }
  std::int64_t refused() override {
    const UserConnection user(path());
    return sqlite::fence_marks(user.get()).value().front().refused;
  }

 private:
  std::string path() const { return folder_.file("app.db"); }
  rig::TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, OutboxConformance, ::testing::Values(MakeOutbox([] {
                           return std::make_unique<SqliteOutboxUnderTest>();
                         })));

TEST(SqliteOutbox, PayloadMayBeAnyBytes) {
  SqliteOutboxUnderTest database;
  const auto outbox = database.open();
  ASSERT_TRUE(good(outbox->install()));
  const std::string bytes("\0\xff\x01", 3);
  ASSERT_TRUE(good(database.put({{"a", "t", bytes, {}}}, true)));
  EXPECT_EQ(outbox->next(1, {})->front().payload, bytes);
}

TEST(SqliteOutbox, FileMustBeThere) {
  const auto outbox =
      sqlite::adapters().front().offers.open<Outbox>(Url::parse("sqlite:/nowhere/app.db").value());
  ASSERT_FALSE(outbox);
  EXPECT_EQ(outbox.error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace leasehold::testing
