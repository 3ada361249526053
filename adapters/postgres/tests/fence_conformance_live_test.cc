// Each form of the fence against the rules of all fences, with a real server that is killed and
// started in between.
#include "testing/fence_conformance.h"

#include "statements.h"
#include "test_database.h"
#include "testing/sql_fence_forms.h"

namespace leasehold::testing {
namespace {

constexpr const char* kColumns = "(name text COLLATE \"C\" PRIMARY KEY, value text)";

class FencedDatabase : public postgres::TestDatabase {
 public:
  FencedDatabase() : TestDatabase(Installed::fence) {
    const Connection user(place());
    EXPECT_EQ(user.exec(std::string("DROP TABLE data; CREATE TABLE data") + kColumns), "");
    EXPECT_TRUE(good(add_columns(user, "data")));
  }

  static void make_table(const Connection& user, const std::string& table,
                         const ResourceName& resource) {
    EXPECT_EQ(user.exec("SELECT pg_advisory_lock(1)"), "");
    EXPECT_EQ(user.exec("CREATE TABLE IF NOT EXISTS " + table + kColumns), "");
    EXPECT_TRUE(good(guard(user, table, resource)));
    EXPECT_EQ(user.exec("SELECT pg_advisory_unlock(1)"), "");
  }
  static Result<sql::Rows> run(PGconn* connection, const std::string& sql,
                               const sql::Parameters& parameters) {
    return postgres::run_statement(postgres::Session(connection), sql, parameters, {});
  }
  void restart() const {
    postgres::fence_server().kill();
    postgres::fence_server().start();
  }
};

INSTANTIATE_TEST_SUITE_P(
    Postgres, FenceConformance,
    ::testing::Values(sql_fence_case<FencedDatabase, TransactionForm>("function"),
                      sql_fence_case<FencedDatabase, TableForm>("table"),
                      sql_fence_case<FencedDatabase, RowForm>("row")),
    name_of_fence_case);

}  // namespace
}  // namespace leasehold::testing
