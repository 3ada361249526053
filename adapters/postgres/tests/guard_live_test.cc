// Tables that refuse whoever has not entered.
#include <algorithm>
#include <vector>

#include "fence_database.h"
#include "leasehold/fence_admin.h"
#include "leasehold/postgres/adapter.h"

namespace leasehold::postgres {
namespace {

class GuardTest : public FenceDatabase {
 protected:
  GuardTest() {
    EXPECT_EQ(user_.exec("CREATE TABLE orders(id int PRIMARY KEY, paid boolean DEFAULT false);"
                         "INSERT INTO orders VALUES(1)"),
              "");
    EXPECT_TRUE(good(guard("orders")));
  }

  Status guard(const std::string& table) const { return guard_table(user_.get(), table, ledger()); }
  std::string orders() const {
    return user_.ask("SELECT string_agg(id || ':' || paid, ' ' ORDER BY id) FROM orders");
  }
  std::vector<GuardedTable> guards() const {
    auto admin = adapters().front().offers.open<FenceAdmin>(Url::parse(url()).value()).value();
    auto tables = admin->guards();
    EXPECT_TRUE(good(tables));
    return tables ? *tables : std::vector<GuardedTable>();
  }
};

TEST_F(GuardTest, GuardIsCommittedDurably) {
  watch_commits("leasehold_fence.guarded");
  ASSERT_TRUE(good(unguard_table(user_.get(), "orders")));
  EXPECT_EQ(commits(), "on") << "removed";
  ASSERT_TRUE(good(guard("orders")));
  EXPECT_EQ(commits(), "on") << "put";
}

const std::vector<std::string> kWrites = {
    "INSERT INTO orders VALUES(2)",
    "UPDATE orders SET paid = true",
    "UPDATE orders SET paid = true WHERE id = 99",
    "DELETE FROM orders",
    "TRUNCATE orders",
    "INSERT INTO orders VALUES(1) ON CONFLICT (id) DO UPDATE SET paid = true",
    "INSERT INTO orders VALUES(1) ON CONFLICT DO NOTHING",
    "WITH gone AS (DELETE FROM orders RETURNING id) SELECT * FROM gone",
    "DO $$ BEGIN UPDATE orders SET paid = true; END $$",
    "PREPARE late AS UPDATE orders SET paid = true; EXECUTE late",
};

TEST_F(GuardTest, EveryWriteWithoutEnteringIsRefused) {
  for (const std::string& sql : kWrites) {
    EXPECT_THAT(user_.exec(sql), StartsWith("LH002 leasehold: not_entered: table public.orders"))
        << sql;
  }
  if (PQserverVersion(user_.get()) >= 150000) {
    EXPECT_THAT(user_.exec("MERGE INTO orders o USING (SELECT 1 AS id) n ON o.id = n.id "
                           "WHEN MATCHED THEN DELETE"),
                StartsWith("LH002"));
  }
  EXPECT_THAT(user_.exec("COPY orders FROM PROGRAM 'echo 2'"), StartsWith("LH002"));
  EXPECT_EQ(orders(), "1:false");
}

TEST_F(GuardTest, EveryWriteAfterEnteringPasses) {
  for (const std::string& sql : kWrites) {
    EXPECT_EQ(user_.exec("BEGIN;" + enter("33") + ";" + sql + "; ROLLBACK; DEALLOCATE ALL"), "")
        << sql;
  }
}

TEST_F(GuardTest, CascadeFromAnotherTableIsRefusedToo) {
  ASSERT_EQ(user_.exec("CREATE TABLE line(id int REFERENCES orders ON DELETE CASCADE)"), "");
  ASSERT_TRUE(good(guard("line")));
  ASSERT_EQ(user_.exec("BEGIN;" + enter("33") + "; INSERT INTO line VALUES(1); COMMIT"), "");
  ASSERT_TRUE(good(unguard_table(user_.get(), "orders")));
  EXPECT_THAT(user_.exec("DELETE FROM orders"), HasSubstr("public.line"));
  EXPECT_EQ(orders(), "1:false");
}

TEST_F(GuardTest, EntryEndsWithItsTransaction) {
  ASSERT_EQ(user_.exec("BEGIN;" + enter("33") + "; INSERT INTO orders VALUES(2); COMMIT"), "");
  EXPECT_THAT(user_.exec("INSERT INTO orders VALUES(3)"), StartsWith("LH002"));
  ASSERT_EQ(user_.exec(enter("33")), "") << "a transaction of its own";
  EXPECT_THAT(user_.exec("INSERT INTO orders VALUES(3)"), StartsWith("LH002"));
  const UserConnection other(url());
  ASSERT_EQ(user_.exec("BEGIN;" + enter("33")), "");
  EXPECT_THAT(other.exec("INSERT INTO orders VALUES(3)"), StartsWith("LH002"));
}

TEST_F(GuardTest, ZombieIsRefusedByTheFenceAndByTheTable) {
  const UserConnection zombie(url());
  ASSERT_EQ(zombie.exec("BEGIN;" + enter("33") + "; COMMIT"), "");
  ASSERT_EQ(user_.exec(enter("34")), "");
  const auto late = fence_of(zombie).transaction(token_of(33, '1'), nothing);
  EXPECT_TRUE(bad(late, ErrorCode::fenced_out));
  EXPECT_THAT(zombie.exec("INSERT INTO orders VALUES(2)"), StartsWith("LH002"));
  EXPECT_EQ(orders(), "1:false");
}

TEST_F(GuardTest, PartitionsAreGuardedWithTheirTable) {
  ASSERT_EQ(user_.exec("CREATE TABLE log(day int) PARTITION BY RANGE(day);"
                       "CREATE TABLE log_1 PARTITION OF log FOR VALUES FROM (0) TO (10)"),
            "");
  ASSERT_TRUE(good(guard("log")));
  ASSERT_EQ(user_.exec("CREATE TABLE log_2 PARTITION OF log FOR VALUES FROM (10) TO (20)"), "");
  for (const char* sql : {"INSERT INTO log VALUES(1)", "INSERT INTO log_1 VALUES(1)",
                          "INSERT INTO log_2 VALUES(11)", "TRUNCATE log"}) {
    EXPECT_THAT(user_.exec(sql), StartsWith("LH002")) << sql;
  }
  EXPECT_EQ(user_.exec("BEGIN;" + enter("33") +
                       "; INSERT INTO log VALUES(1), (11); DELETE FROM log_1; UPDATE log SET day = "
                       "12; COMMIT"),
            "");
  EXPECT_EQ(user_.ask("SELECT string_agg(day::text, ' ') FROM log"), "12");
}

TEST_F(GuardTest, WhoMayWriteTheTableNeedsNoRightToTheFence) {
  ASSERT_EQ(user_.exec("DROP ROLE IF EXISTS writer; CREATE ROLE writer LOGIN;"
                       "GRANT INSERT ON orders TO writer"),
            "");
  {
    const UserConnection writer(fence_server().url(database_, "writer"));
    EXPECT_THAT(writer.exec("INSERT INTO orders VALUES(2)"), StartsWith("LH002"));
  }
  EXPECT_EQ(user_.exec("DROP OWNED BY writer; DROP ROLE writer"), "");
}

TEST_F(GuardTest, GuardWithoutItsTriggerIsSeenAndPutBack) {
  ASSERT_EQ(user_.exec("ALTER TABLE orders DISABLE TRIGGER ALL"), "");
  EXPECT_FALSE(guards().at(0).armed);
  ASSERT_TRUE(good(guard("orders")));
  EXPECT_TRUE(guards().at(0).armed);
  ASSERT_EQ(user_.exec("DROP TRIGGER leasehold_fence_guard ON orders"), "");
  EXPECT_FALSE(guards().at(0).armed);
  ASSERT_TRUE(good(guard("orders")));
  EXPECT_THAT(user_.exec("DELETE FROM orders"), StartsWith("LH002"));
}

TEST_F(GuardTest, TablesThatInheritAreGuardedWithTheirTable) {
  ASSERT_EQ(user_.exec("CREATE TABLE other(note text);"
                       "CREATE TABLE heir() INHERITS (orders, other);"
                       "CREATE TABLE grandchild() INHERITS (heir);"
                       "INSERT INTO grandchild VALUES(5)"),
            "");
  EXPECT_FALSE(guards().at(0).armed) << "what was made later is not guarded yet";
  ASSERT_TRUE(good(guard("orders")));
  EXPECT_TRUE(guards().at(0).armed);
  for (const char* sql : {"INSERT INTO heir VALUES(2)", "INSERT INTO grandchild VALUES(2)",
                          "UPDATE grandchild SET paid = true", "UPDATE other SET note = 'x'",
                          "DELETE FROM other", "TRUNCATE grandchild", "TRUNCATE other"}) {
    EXPECT_THAT(user_.exec(sql), StartsWith("LH002")) << sql;
    EXPECT_EQ(user_.exec("BEGIN;" + enter("33") + ";" + sql + "; ROLLBACK"), "") << sql;
  }
  EXPECT_EQ(orders(), "1:false 5:false");
  ASSERT_TRUE(good(unguard_table(user_.get(), "orders")));
  EXPECT_EQ(user_.exec("DELETE FROM grandchild; TRUNCATE other"), "");
}

// A statement, and the table that it lays open.
TEST_F(GuardTest, ArmedMeansEveryTriggerIsThereAndEnabledAndOurs) {
  ASSERT_EQ(user_.exec("CREATE FUNCTION harmless() RETURNS trigger LANGUAGE plpgsql AS"
                       " 'BEGIN IF TG_OP = ''DELETE'' THEN RETURN OLD; END IF; RETURN NEW; END';"
                       "CREATE TABLE log(day int) PARTITION BY RANGE(day);"
                       "CREATE TABLE log_1 PARTITION OF log FOR VALUES FROM (0) TO (10)"
                       " PARTITION BY RANGE(day);"
                       "CREATE TABLE log_1_1 PARTITION OF log_1 FOR VALUES FROM (0) TO (5);"
                       "CREATE TABLE heir() INHERITS (orders)"),
            "");
  const auto swapped = [](const std::string& table, const std::string& trigger) {
    return "DROP TRIGGER IF EXISTS leasehold_fence_guard ON " + table +
           "; CREATE TRIGGER leasehold_fence_guard BEFORE " + trigger;
  };
  const std::string all = "INSERT OR UPDATE OR DELETE ON ";
  const std::vector<std::string> log = {
      "ALTER TABLE log_1_1 DISABLE TRIGGER leasehold_fence_guard",
      "ALTER TABLE log_1_1 ENABLE REPLICA TRIGGER leasehold_fence_guard",
      swapped("log", all + "log FOR EACH ROW EXECUTE FUNCTION harmless()"),
      swapped("log", all + "log FOR EACH ROW EXECUTE FUNCTION leasehold_fence.guard('other')"),
      swapped(
          "log",
          all + "log FOR EACH ROW WHEN (false) EXECUTE FUNCTION leasehold_fence.guard('ledger')"),
      swapped("log", "UPDATE ON log FOR EACH ROW EXECUTE FUNCTION leasehold_fence.guard('ledger')"),
      "DROP TRIGGER leasehold_fence_truncate ON log"};
  const std::vector<std::string> orders = {
      swapped("orders", all + "orders FOR EACH STATEMENT EXECUTE FUNCTION harmless()"),
      swapped("orders",
              "INSERT OR UPDATE OF paid OR DELETE OR TRUNCATE ON orders"
              " FOR EACH STATEMENT EXECUTE FUNCTION leasehold_fence.guard('ledger')"),
      "ALTER TABLE heir DISABLE TRIGGER ALL", "DROP TRIGGER leasehold_fence_truncate ON heir"};
  const auto armed = [&](const std::string& table) {
    for (const GuardedTable& it : guards()) {
      if (it.table == table) return it.armed;
    }
    return false;
  };
  for (const auto& [table, damages] : {std::pair("log", log), std::pair("orders", orders)}) {
    ASSERT_TRUE(good(guard(table)));
    for (const std::string& damage : damages) {
      ASSERT_TRUE(armed(table)) << damage;
      ASSERT_EQ(user_.exec(damage), "") << damage;
      EXPECT_FALSE(armed(table)) << damage;
      ASSERT_TRUE(good(guard(table))) << damage;
    }
    EXPECT_TRUE(armed(table));
  }
  for (const char* sql : {"INSERT INTO log VALUES(1)", "INSERT INTO log_1_1 VALUES(1)",
                          "TRUNCATE log", "UPDATE orders SET paid = true", "TRUNCATE heir"}) {
    EXPECT_THAT(user_.exec(sql), StartsWith("LH002")) << sql;
  }
}

TEST_F(GuardTest, TableBelowThatIsGuardedItselfIsNotTakenOver) {
  ASSERT_EQ(user_.exec("CREATE TABLE whole(id int, paid boolean);"
                       "ALTER TABLE orders INHERIT whole"),
            "");
  EXPECT_FALSE(guards().at(0).armed) << "a statement that names the whole passes it";
  const auto refused = guard("whole");
  ASSERT_TRUE(bad(refused, ErrorCode::invalid));
  EXPECT_THAT(refused.error().message, HasSubstr("orders"));
  ASSERT_TRUE(good(unguard_table(user_.get(), "orders")));
  EXPECT_TRUE(good(guard("whole")));
  EXPECT_THAT(user_.exec("DELETE FROM orders"), StartsWith("LH002"));
}

// Two tables, and one that inherits from both, with a row.
class SharedHeir : public GuardTest {
 protected:
  SharedHeir() {
    EXPECT_EQ(user_.exec("CREATE TABLE a1(id int); CREATE TABLE a2(id int);"
                         "CREATE TABLE ab() INHERITS (a1, a2); INSERT INTO ab VALUES(1)"),
              "");
  }

  Status guard_by(const std::string& table, const std::string& resource) const {
    return guard_table(user_.get(), table, ResourceName::parse(resource).value());
  }
  // A write to `ab` in a transaction that has entered this resource only.
  std::string write_as(const std::string& resource) const {
    const std::string said =
        user_.exec("BEGIN;" + enter("33", "'" + resource + "'") + "; UPDATE ab SET id = 2");
    EXPECT_EQ(user_.exec("ROLLBACK"), "");
    return said;
  }
  bool is_armed(const std::string& table) const {
    const auto tables = guards();
    return std::any_of(tables.begin(), tables.end(),
                       [&](const GuardedTable& it) { return it.table == table && it.armed; });
  }
};

TEST_F(SharedHeir, IsNotTakenOverByAnotherResource) {
  ASSERT_TRUE(good(guard_by("a1", "A1")));
  const auto second = guard_by("a2", "A2");
  EXPECT_TRUE(bad(second, ErrorCode::invalid));
  if (!second) {
    EXPECT_THAT(second.error().message, HasSubstr("public.ab"));
    EXPECT_THAT(second.error().message, HasSubstr("public.a1"));
    EXPECT_THAT(second.error().message, HasSubstr("'A1'"));
  }
  EXPECT_THAT(write_as("A2"), StartsWith("LH002"));
  EXPECT_EQ(write_as("A1"), "");
  EXPECT_TRUE(is_armed("a1"));
  EXPECT_EQ(guards().size(), 2u) << "with orders";
  ASSERT_TRUE(good(unguard_table(user_.get(), "a1")));
  EXPECT_TRUE(good(guard_by("a2", "A2")));
  EXPECT_THAT(write_as("A1"), StartsWith("LH002"));
}

TEST_F(SharedHeir, MayHaveTheSameResourceFromBoth) {
  ASSERT_TRUE(good(guard_by("a1", "A")));
  ASSERT_EQ(user_.exec("ALTER TABLE ab DISABLE TRIGGER ALL"), "");
  ASSERT_TRUE(good(guard_by("a2", "A")));
  EXPECT_TRUE(is_armed("a1"));
  EXPECT_TRUE(is_armed("a2"));
  ASSERT_TRUE(good(unguard_table(user_.get(), "a1")));
  EXPECT_TRUE(is_armed("a2"));
  EXPECT_THAT(user_.exec("DELETE FROM ab"), StartsWith("LH002"));
  EXPECT_EQ(user_.exec("DELETE FROM ONLY a1"), "");
  ASSERT_TRUE(good(unguard_table(user_.get(), "a2")));
  EXPECT_EQ(user_.exec("DELETE FROM ab; TRUNCATE ab"), "");
}

TEST_F(SharedHeir, KeepsTheGuardOfTheOneThatStays) {
  ASSERT_EQ(user_.exec("ALTER TABLE ab NO INHERIT a2"), "");
  ASSERT_TRUE(good(guard_by("a1", "A1")));
  ASSERT_TRUE(good(guard_by("a2", "A2")));
  ASSERT_EQ(user_.exec("ALTER TABLE ab INHERIT a2"), "");
  EXPECT_TRUE(is_armed("a1"));
  EXPECT_FALSE(is_armed("a2"));
  EXPECT_TRUE(bad(guard_by("a2", "A2"), ErrorCode::invalid));
  EXPECT_TRUE(good(guard_by("a1", "A1"))) << "as it is";
  ASSERT_TRUE(good(unguard_table(user_.get(), "a2")));
  EXPECT_TRUE(is_armed("a1"));
  EXPECT_THAT(write_as("A2"), StartsWith("LH002"));
}

// Each would look before the other has said what it guards.
TEST_F(SharedHeir, IsNotTakenOverByOneWhoGuardsAtTheSameTime) {
  ASSERT_EQ(user_.exec("BEGIN; SELECT leasehold_fence.guard_table('a1', 'A1')"), "");
  const UserConnection other(url());
  auto second = std::async(std::launch::async, [&] {
    return guard_table(other.get(), "a2", ResourceName::parse("A2").value());
  });
  await_waiter();
  ASSERT_EQ(user_.exec("COMMIT"), "");
  EXPECT_TRUE(bad(second.get(), ErrorCode::invalid));
  EXPECT_THAT(write_as("A2"), StartsWith("LH002"));
}

// While another session changes what the table belongs to, or what belongs to it.
class GuardBehind : public GuardTest, public ::testing::WithParamInterface<const char*> {
 protected:
  GuardBehind() {
    EXPECT_EQ(user_.exec("CREATE TABLE part(id int); CREATE TABLE whole(id int);" + isolated()),
              "");
  }

  static std::string isolated() {
    return std::string("SET default_transaction_isolation = '") + GetParam() + "'";
  }
  Status guard_behind(const std::string& change) const {
    const UserConnection other(url());
    EXPECT_EQ(other.exec("BEGIN; " + change), "");
    auto waiting = std::async(std::launch::async, [&] { return guard("part"); });
    await_waiter_elsewhere();
    EXPECT_EQ(other.exec("COMMIT"), "");
    return waiting.get();
  }
};

TEST_P(GuardBehind, TableThatBecamePartOfAnotherMeanwhileIsRefused) {
  EXPECT_TRUE(bad(guard_behind("ALTER TABLE part INHERIT whole"), ErrorCode::invalid));
  EXPECT_EQ(guards().size(), 1u);
  EXPECT_EQ(user_.exec("INSERT INTO part VALUES(1)"), "");
}

TEST_P(GuardBehind, TableThatWasMadeBelowMeanwhileIsGuarded) {
  EXPECT_TRUE(good(guard_behind("CREATE TABLE heir() INHERITS (part)")));
  EXPECT_THAT(user_.exec("INSERT INTO heir VALUES(1)"), StartsWith("LH002"));
}

TEST_P(GuardBehind, PlainSqlIsRefusedWhereItCannotSeeThat) {
  const bool sees = std::string(GetParam()) == "read committed";
  const std::string said = user_.exec("SELECT leasehold_fence.guard_table('part', 'ledger')");
  EXPECT_EQ(said.substr(0, 5), sees ? "" : "LH003") << said;
  EXPECT_EQ(guards().size(), sees ? 2u : 1u);
}

INSTANTIATE_TEST_SUITE_P(All, GuardBehind,
                         ::testing::Values("read committed", "repeatable read", "serializable"));

TEST_F(GuardTest, GuardFollowsARenamedTableAndGoesWithADroppedOne) {
  ASSERT_EQ(user_.exec("ALTER TABLE orders RENAME TO sales"), "");
  EXPECT_THAT(user_.exec("DELETE FROM sales"), StartsWith("LH002"));
  EXPECT_EQ(guards().at(0).table, "sales");
  ASSERT_EQ(user_.exec("DROP TABLE sales"), "");
  EXPECT_TRUE(guards().empty());
}

TEST_F(GuardTest, HostileAndMissingTablesAreInvalid) {
  ASSERT_EQ(user_.exec("CREATE VIEW v AS SELECT 1; CREATE SEQUENCE s"), "");
  for (const std::string table :
       {"missing", "", " ", "orders; DROP TABLE orders", "orders'", "\"", "a.b.c.d", "1", "v", "s",
        "pg_catalog.pg_class", "leasehold_fence.mark", "orders WHERE true"}) {
    EXPECT_TRUE(bad(guard(table), ErrorCode::invalid)) << table;
    EXPECT_TRUE(bad(unguard_table(user_.get(), table), ErrorCode::invalid)) << table;
  }
  EXPECT_TRUE(bad(guard(std::string("orders\0x", 8)), ErrorCode::invalid));
  EXPECT_EQ(orders(), "1:false");
  EXPECT_EQ(guards().size(), 1u);
}

TEST_F(GuardTest, PartOfAnotherTableIsNotGuardedByItself) {
  ASSERT_EQ(user_.exec("CREATE TABLE whole(id int) PARTITION BY LIST (id)"), "");
  ASSERT_EQ(user_.exec("CREATE TABLE one PARTITION OF whole FOR VALUES IN (1)"), "");
  ASSERT_EQ(user_.exec("CREATE TABLE heir() INHERITS (orders)"), "");
  EXPECT_TRUE(bad(guard("one"), ErrorCode::invalid)) << "INSERT INTO whole would pass";
  EXPECT_TRUE(bad(guard("heir"), ErrorCode::invalid));
  ASSERT_EQ(user_.exec("CREATE TABLE two(id int)"), "");
  ASSERT_TRUE(good(guard("two")));
  ASSERT_EQ(user_.exec("ALTER TABLE whole ATTACH PARTITION two FOR VALUES IN (2)"), "");
  const auto tables = guards();
  const auto two = std::find_if(tables.begin(), tables.end(),
                                [](const GuardedTable& it) { return it.table == "two"; });
  ASSERT_NE(two, tables.end());
  EXPECT_FALSE(two->armed) << "writes through the parent pass it now";
}

}  // namespace
}  // namespace leasehold::postgres
