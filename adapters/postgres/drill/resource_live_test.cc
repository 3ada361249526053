// The drill's resource in a database where somebody else may create things.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/postgres/rig/server.h"
#include "drill/runner/resource.h"
#include "testing/results.h"

namespace leasehold::drill {
namespace {

using leasehold::testing::bad;
using leasehold::testing::good;
using ::testing::HasSubstr;

class DrillResourceTest : public ::testing::Test {
 protected:
  DrillResourceTest() {
    server_.psql("CREATE ROLE stranger LOGIN");
    server_.psql("GRANT CREATE ON SCHEMA public TO stranger");
    server_.psql("GRANT CREATE ON DATABASE postgres TO stranger");
  }

  Result<std::unique_ptr<Resource>> open() const {
    return open_resource({.url = server_.url("postgres"), .name = "cell", .create = true});
  }
  // A table with a trigger that does what the stranger likes.
  void set_trap(const std::string& schema, const std::string& table) const {
    server_.psql("SET ROLE stranger; CREATE TABLE " + table +
                 "(name text PRIMARY KEY, value bigint NOT NULL);"
                 "CREATE OR REPLACE FUNCTION " +
                 schema +
                 ".seize() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                 " ALTER ROLE stranger SUPERUSER; RETURN NEW; END $$;"
                 "CREATE TRIGGER seize BEFORE INSERT ON " +
                 table + " FOR EACH ROW EXECUTE FUNCTION " + schema + ".seize()");
  }
  std::string is_superuser() const {
    return server_.psql("SELECT rolsuper FROM pg_roles WHERE rolname = 'stranger'");
  }

  const leasehold::rig::PostgresServer server_;
};

TEST_F(DrillResourceTest, UsesNoTableThatSomebodyElseHasMade) {
  set_trap("public", "public.drill_cell");
  set_trap("public", "public.cell");
  const auto resource = open();
  ASSERT_TRUE(good(resource));
  EXPECT_EQ((*resource)->peek().value_or(99), 0U);
  EXPECT_EQ(is_superuser(), "f");
}

TEST_F(DrillResourceTest, SchemaThatSomebodyElseHasMadeIsRefused) {
  server_.psql("SET ROLE stranger; CREATE SCHEMA leasehold_drill");
  set_trap("leasehold_drill", "leasehold_drill.cell");
  const auto resource = open();
  ASSERT_TRUE(bad(resource, ErrorCode::unavailable));
  EXPECT_THAT(resource.error().message, HasSubstr("'stranger'"));
  EXPECT_EQ(is_superuser(), "f");
}

}  // namespace
}  // namespace leasehold::drill
