#include "leasehold/sqlite/outbox.h"

#include "test_database.h"

namespace leasehold::testing {
namespace {

using SqliteOutboxUnderTest = SqlOutboxUnderTest<sqlite::TestDatabase>;

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
