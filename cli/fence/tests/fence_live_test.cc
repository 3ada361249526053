// The fence of a PostgreSQL database, as an operator and a shell script use it.
#include <nlohmann/json.hpp>

#include "adapters/postgres/rig/server.h"
#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

using leasehold::rig::PostgresServer;
using nlohmann::json;

class PostgresFenceTest : public CliTest {
 protected:
  PostgresFenceTest() {
    psql("CREATE TABLE orders(id int PRIMARY KEY, paid int)");
    psql("INSERT INTO orders VALUES(1, 0)");
    // What docs/fence-postgres.md shows.
    write("pay.sh", R"sh(
said=$(psql -X -q -v ON_ERROR_STOP=1 -v VERBOSITY=verbose "$1" -o /dev/null \
  -v token="$LEASEHOLD_TOKEN" -v lineage="$LEASEHOLD_LINEAGE" -v request="$LEASEHOLD_REQUEST" 2>&1 <<'SQL'
BEGIN;
SELECT leasehold_fence.enter('orders', :'token', :'lineage', :'request');
UPDATE orders SET paid = paid + 1 WHERE id = 1;
COMMIT;
SQL
) && exit 0
echo "$said" >&2
case $said in *LH001*)
  psql -X -q "$1" -o /dev/null -c "SELECT leasehold_fence.count_refusal('orders')" ;;
esac
exit 1
)sh");
  }
  ~PostgresFenceTest() override { server().drop_database(database_); }

  static PostgresServer& server() {
    static PostgresServer running;
    return running;
  }
  std::string psql(const std::string& sql) const { return server().psql(sql, database_); }
  std::string paid() const { return psql("SELECT paid FROM orders"); }
  json shown() const { return json::parse(leasehold({"fence", "show", url(), "--json"}).out); }
  std::string url() const { return server().url(database_); }

  // pay.sh under a lock, with the token it got or another.
  Finished pay(const std::string& environment = "LEASEHOLD_UNUSED=1") const {
    return leasehold(
        {"run", "orders", "--fenced", "--", "env", environment, "sh", path("pay.sh"), url()});
  }

  const std::string database_ = server().create_database();
};

TEST_F(PostgresFenceTest, ScriptPassesTheFenceAndTheStaleOneDoesNot) {
  ASSERT_EQ(leasehold({"fence", "install", url()}).status, 0);
  ASSERT_EQ(leasehold({"fence", "install", url()}).status, 0) << "again changes nothing";
  EXPECT_EQ(pay().status, 0);
  EXPECT_EQ(pay().status, 0);
  EXPECT_EQ(paid(), "2");
  const Finished late = pay("LEASEHOLD_TOKEN=1");
  EXPECT_EQ(late.status, 1);
  EXPECT_THAT(late.err, HasSubstr("refused token 1: its mark is 2"));
  EXPECT_EQ(paid(), "2");
  const json mark = shown().at("fences").at(0);
  EXPECT_EQ(mark.at("resource"), "orders");
  EXPECT_EQ(mark.at("token"), 2);
  EXPECT_EQ(mark.at("refused"), 1);
}

TEST_F(PostgresFenceTest, TableRefusesTheScriptThatForgotToEnter) {
  ASSERT_EQ(leasehold({"fence", "install", url(), "--table", "orders"}).status, 0);
  EXPECT_THAT(shell("psql -X '" + url() + "' -c 'UPDATE orders SET paid = 9'").err,
              HasSubstr("leasehold: not_entered"));
  EXPECT_EQ(pay().status, 0);
  EXPECT_EQ(paid(), "1");
  EXPECT_EQ(shown().at("tables").at(0).at("table"), "orders");
  EXPECT_EQ(leasehold({"fence", "remove", url(), "--table", "orders", "--force"}).status, 0);
  EXPECT_TRUE(shown().at("tables").empty());
}

TEST_F(PostgresFenceTest, OtherStoreIsAdoptedOrTheResourceReset) {
  ASSERT_EQ(leasehold({"fence", "install", url()}).status, 0);
  ASSERT_EQ(pay().status, 0);
  const std::string other = std::string(32, 'b') + "/orders";
  const Words adopt = {"fence", "adopt", url(), "orders", "--lineage", other, "--at-least", "5"};
  ASSERT_EQ(leasehold(adopt).status, 0);
  const Finished foreign = pay();
  EXPECT_EQ(foreign.status, 1);
  EXPECT_THAT(foreign.err, HasSubstr("leasehold fence adopt"));
  EXPECT_EQ(shown().at("fences").at(0).at("lineage"), other);
  EXPECT_EQ(leasehold({"fence", "reset", url(), "orders"}).status, 64);
  EXPECT_EQ(leasehold({"fence", "reset", url(), "orders", "--force"}).status, 0);
  EXPECT_EQ(pay().status, 0);
}

TEST_F(PostgresFenceTest, WhatIsWrongIsSaidInOneSentence) {
  EXPECT_EQ(leasehold({"fence", "show", url()}).status, 69) << "not installed";
  ASSERT_EQ(leasehold({"fence", "install", url()}).status, 0);
  const Finished missing =
      leasehold({"fence", "install", url(), "--table", "x; DROP TABLE orders"});
  EXPECT_EQ(missing.status, 64);
  EXPECT_THAT(missing.err, HasSubstr("there is no table"));
  EXPECT_EQ(leasehold({"fence", "show", url() + "?schema=x"}).status, 64);
  const Finished nobody = leasehold({"fence", "show", "postgres://me:hunter2@127.0.0.1:1/shop"});
  EXPECT_EQ(nobody.status, 69);
  EXPECT_THAT(nobody.err, Not(HasSubstr("hunter2")));
  EXPECT_EQ(leasehold({"fence", "remove", url(), "--force"}).status, 0);
  EXPECT_EQ(leasehold({"fence", "show", url()}).status, 69);
  EXPECT_EQ(paid(), "0");
}

}  // namespace
}  // namespace leasehold::cli
