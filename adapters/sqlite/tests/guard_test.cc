// Tables that refuse whoever has not entered.
#include "test_database.h"
#include "testing/sql_fence_suites.h"

namespace leasehold::sqlite {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class GuardTest : public leasehold::testing::GuardSuite<TestDatabase> {
 protected:
  static std::string enter(const std::string& token, const std::string& resource = "ledger") {
    return TestDatabase::enter(token, resource);
  }
  std::string inside() const { return user_.ask("SELECT count(*) FROM leasehold_inside"); }
};

const std::vector<std::string> kWrites = {
    "INSERT INTO orders VALUES(2, 0)",
    "INSERT OR REPLACE INTO orders VALUES(1, 1)",
    "REPLACE INTO orders VALUES(1, 1)",
    "INSERT INTO orders VALUES(1, 1) ON CONFLICT DO UPDATE SET paid = 1",
    "UPDATE orders SET paid = 1",
    "UPDATE OR REPLACE orders SET paid = 1",
    "DELETE FROM orders",
};

TEST_F(GuardTest, EveryWriteWithoutEnteringIsRefused) {
  for (const std::string& sql : kWrites) {
    EXPECT_THAT(user_.exec(sql), StartsWith("leasehold: not_entered: table orders")) << sql;
  }
  for (const char* how : {"OR IGNORE", "OR FAIL", "OR ROLLBACK"}) {
    EXPECT_NE(user_.exec(std::string("INSERT ") + how + " INTO orders VALUES(2, 0)"), "") << how;
  }
  EXPECT_EQ(orders(), "1:0");
  const UserConnection careless(database_.place());  // without foreign keys
  EXPECT_THAT(careless.exec("DELETE FROM orders"), StartsWith("leasehold: not_entered"));
}

TEST_F(GuardTest, EveryWriteAfterEnteringPasses) {
  for (const std::string& sql : kWrites) {
    EXPECT_EQ(user_.exec("BEGIN;" + enter("33") + sql + "; ROLLBACK"), "") << sql;
  }
}

TEST_F(GuardTest, TransactionLeavesNothingInside) {
  EXPECT_TRUE(good(fence().transaction(token_of(33, '1'), doing("UPDATE orders SET paid = 1"))));
  EXPECT_EQ(inside(), "0");
}

TEST_F(GuardTest, EntryThatIsNotLeftCannotBeCommitted) {
  ASSERT_EQ(user_.exec("BEGIN;" + enter("33") + "UPDATE orders SET paid = 1"), "");
  EXPECT_THAT(user_.exec("COMMIT"), HasSubstr("FOREIGN KEY"));
  EXPECT_EQ(user_.exec("DELETE FROM leasehold_inside; COMMIT"), "");
  EXPECT_EQ(orders(), "1:1");
  EXPECT_THAT(user_.exec(enter("33")), HasSubstr("FOREIGN KEY")) << "a transaction of its own";
  EXPECT_EQ(inside(), "0");
}

TEST_F(GuardTest, OwnTransactionLeavesWithTheFence) {
  const Fence fence = this->fence();
  ASSERT_EQ(user_.exec("BEGIN IMMEDIATE"), "");
  ASSERT_TRUE(good(fence.enter(token_of(33, '1'))));
  ASSERT_TRUE(good(fence.enter(token_of(33, '1')))) << "twice is once";
  ASSERT_EQ(user_.exec("UPDATE orders SET paid = 1"), "");
  ASSERT_TRUE(good(fence.leave()));
  EXPECT_THAT(user_.exec("DELETE FROM orders"), StartsWith("leasehold: not_entered"));
  EXPECT_EQ(user_.exec("COMMIT"), "");
  EXPECT_EQ(orders(), "1:1");
}

TEST_F(GuardTest, EnteringNeedsForeignKeys) {
  const UserConnection careless(database_.place());
  EXPECT_THAT(careless.exec("BEGIN;" + enter("33")),
              StartsWith("leasehold: invalid: this resource guards a table"));
  EXPECT_EQ(careless.exec("ROLLBACK"), "");
  const auto entered =
      Fence::open(careless.get(), "ledger")
          ->transaction(token_of(33, '1'), [](OpenTransaction&) -> Status { return {}; });
  ASSERT_TRUE(bad(entered, ErrorCode::invalid));
  EXPECT_THAT(entered.error().message, HasSubstr("foreign_keys"));
  EXPECT_EQ(careless.exec(enter("1", "unguarded")), "") << "others need none";
}

TEST_F(GuardTest, ConnectionThatDoesNotTrustTheSchemaIsRefused) {
  ASSERT_EQ(user_.exec("PRAGMA trusted_schema = OFF"), "");
  EXPECT_NE(user_.exec("BEGIN;" + enter("33")), "");
  EXPECT_EQ(user_.exec("ROLLBACK"), "");
}

TEST_F(GuardTest, ConnectionWithoutTriggersCannotEnter) {
  ASSERT_EQ(sqlite3_db_config(user_.get(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr), SQLITE_OK);
  EXPECT_NE(user_.exec("BEGIN;" + enter("33")), "");
  EXPECT_EQ(user_.exec("ROLLBACK"), "");
  const auto entered =
      Fence::open(user_.get(), "ledger")
          ->transaction(token_of(33, '1'), [](OpenTransaction&) -> Status { return {}; });
  EXPECT_TRUE(bad(entered, ErrorCode::unavailable));
}

TEST_F(GuardTest, RollingBackToASavepointUndoesTheEntry) {
  ASSERT_EQ(
      user_.exec("BEGIN; SAVEPOINT a;" + enter("33") + "UPDATE orders SET paid = 1; ROLLBACK TO a"),
      "");
  EXPECT_THAT(user_.exec("UPDATE orders SET paid = 2"), StartsWith("leasehold: not_entered"));
  EXPECT_EQ(user_.exec("COMMIT"), "");
  EXPECT_EQ(orders(), "1:0");
}

TEST_F(GuardTest, RefusedEntryDoesNotOpenTheTable) {
  ASSERT_EQ(user_.exec("BEGIN;" + enter("34") + "DELETE FROM leasehold_inside; COMMIT"), "");
  EXPECT_THAT(user_.exec("BEGIN;" + enter("33")), StartsWith("leasehold: fenced_out"));
  EXPECT_THAT(user_.exec("DELETE FROM orders"), StartsWith("leasehold: not_entered"));
  EXPECT_EQ(user_.exec("COMMIT"), "");
  EXPECT_EQ(orders(), "1:0");
}

TEST_F(GuardTest, GuardFollowsARenamedTableAndIsMissedOnARebuiltOne) {
  ASSERT_EQ(user_.exec("ALTER TABLE orders RENAME TO sales"), "");
  EXPECT_THAT(user_.exec("DELETE FROM sales"), StartsWith("leasehold: not_entered"));
  EXPECT_EQ(guards().at(0).table, "sales");
  ASSERT_TRUE(good(guard("sales")));
  ASSERT_EQ(user_.exec("DROP TABLE sales; CREATE TABLE sales(a); CREATE TABLE orders(a)"), "");
  EXPECT_FALSE(guards().at(0).armed);
  ASSERT_TRUE(good(guard("orders")));
  EXPECT_TRUE(guards().at(0).armed);
  EXPECT_THAT(user_.exec("INSERT INTO orders VALUES(1)"), StartsWith("leasehold: not_entered"));
}

TEST_F(GuardTest, ArmedMeansEveryTriggerIsOfThisTableAndOurs) {
  ASSERT_EQ(user_.exec("CREATE TABLE other(a)"), "");
  const std::string body = " BEGIN SELECT 1; END";
  const std::string ours = user_.ask(
      "SELECT substr(sql, instr(sql, ' WHEN ')) FROM sqlite_master WHERE name LIKE "
      "'leasehold_guard_%_DELETE'");
  for (const std::string& trigger :
       {"ON other" + body, "ON orders" + body, "ON other" + ours, "ON orders WHEN 0" + body}) {
    ASSERT_TRUE(guards().at(0).armed) << trigger;
    const std::string name =
        user_.ask("SELECT name FROM sqlite_master WHERE name LIKE 'leasehold_guard_%_DELETE'");
    ASSERT_EQ(user_.exec("DROP TRIGGER " + name + "; CREATE TRIGGER " + name + " BEFORE DELETE " +
                         trigger),
              "");
    ASSERT_EQ(guards().size(), 1u);
    EXPECT_EQ(guards().at(0).table, "orders") << trigger;
    EXPECT_FALSE(guards().at(0).armed) << trigger;
    ASSERT_TRUE(good(guard("orders"))) << trigger;
    EXPECT_THAT(user_.exec("DELETE FROM orders"), StartsWith("leasehold: not_entered")) << trigger;
  }
  EXPECT_EQ(user_.exec("DELETE FROM other"), "") << "it is free again";
}

TEST_F(GuardTest, TableThatTakesTheNameOfAGuardedOneIsGuardedToo) {
  ASSERT_EQ(user_.exec("ALTER TABLE orders RENAME TO sales; CREATE TABLE orders(a)"), "");
  ASSERT_TRUE(good(guard("orders")));
  ASSERT_EQ(user_.exec("ALTER TABLE sales RENAME TO swap; ALTER TABLE orders RENAME TO sales;"
                       "ALTER TABLE swap RENAME TO orders; CREATE TABLE third(a)"),
            "");
  ASSERT_TRUE(good(guard("third")));
  ASSERT_EQ(guards().size(), 3u);
  for (const GuardedTable& it : guards()) EXPECT_TRUE(it.armed) << it.table;
  for (const char* table : {"orders", "sales", "third"}) {
    EXPECT_THAT(user_.exec(std::string("INSERT INTO ") + table + " DEFAULT VALUES"),
                StartsWith(std::string("leasehold: not_entered: table ") + table));
  }
  ASSERT_TRUE(good(unguard_table(user_.get(), "orders")));
  EXPECT_EQ(user_.exec("DELETE FROM orders"), "");
}

TEST_F(GuardTest, RemovingTheFenceTakesTheGuardsToo) {
  ASSERT_TRUE(good(remove_fence(user_.get())));
  EXPECT_EQ(user_.ask("SELECT count(*) FROM sqlite_master WHERE name LIKE 'leasehold%' AND name <> "
                      "'leasehold_version'"),
            "0");
  EXPECT_EQ(user_.exec("DELETE FROM orders"), "");
  EXPECT_TRUE(good(remove_fence(user_.get()))) << "again does nothing";
  EXPECT_TRUE(bad(guard("orders"), ErrorCode::unavailable));
  EXPECT_TRUE(good(install_fence(user_.get())));
  EXPECT_TRUE(good(guard("orders")));
}

TEST_F(GuardTest, OtherVersionIsNotTouched) {
  ASSERT_EQ(user_.exec("UPDATE leasehold_version SET version = 2 WHERE part = 'guard'"), "");
  EXPECT_TRUE(bad(guard("orders"), ErrorCode::unavailable));
  EXPECT_TRUE(bad(remove_fence(user_.get()), ErrorCode::unavailable));
  EXPECT_THAT(user_.exec("DELETE FROM orders"), StartsWith("leasehold: not_entered"));
}

TEST_F(GuardTest, HostileAndMissingTablesAreInvalid) {
  ASSERT_EQ(user_.exec("CREATE VIEW v AS SELECT 1; CREATE VIRTUAL TABLE f USING fts5(a);"
                       "CREATE TEMP TABLE mine(a)"),
            "");
  for (const std::string table :
       {"missing", "", "orders; DROP TABLE orders", "orders'", "main.orders", "v", "f", "mine",
        "leasehold_fence", "sqlite_master"}) {
    EXPECT_TRUE(bad(guard(table), ErrorCode::invalid)) << table;
    EXPECT_TRUE(bad(unguard_table(user_.get(), table), ErrorCode::invalid)) << table;
  }
  EXPECT_TRUE(bad(guard(std::string("orders\0x", 8)), ErrorCode::invalid));
  EXPECT_EQ(guards().size(), 1u);
}

TEST_F(GuardTest, OperatorResetsAMark) {
  const auto admin = this->admin();
  ASSERT_EQ(user_.exec(enter("33", "other")), "");
  const auto other = ResourceName::parse("other").value();
  ASSERT_TRUE(bad(Fence::open(user_.get(), other)
                      ->transaction(token_of(32, '1'), [](OpenTransaction&) { return Status(); }),
                  ErrorCode::fenced_out));
  ASSERT_TRUE(good(admin->reset(other)));
  const auto mark = Fence::open(user_.get(), other)->mark();
  ASSERT_TRUE(mark && *mark);
  EXPECT_FALSE((*mark)->mark || (*mark)->lineage);
  EXPECT_EQ((*mark)->refused, 1) << "the alarm is not forgotten";
  EXPECT_EQ(user_.exec(enter("1", "other")), "");
  EXPECT_TRUE(bad(admin->reset(ResourceName::parse("unknown").value()), ErrorCode::invalid));
}

}  // namespace
}  // namespace leasehold::sqlite
