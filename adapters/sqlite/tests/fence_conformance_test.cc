// Each form of the fence against the rules of all fences.
#include "testing/fence_conformance.h"

#include "database.h"
#include "test_database.h"
#include "testing/sql_fence_forms.h"

namespace leasehold::testing {
namespace {

class FencedFile : public sqlite::TestDatabase {
 public:
  struct Connection : sqlite::UserConnection {
    explicit Connection(const std::string& path) : UserConnection(path) {
      // No test cuts the power, so there is no need to wait for the disk.
      EXPECT_EQ(exec("PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON"), "");
    }
  };

  explicit FencedFile(const char* journal = "wal") : TestDatabase(Installed::fence) {
    const Connection user(place());
    EXPECT_EQ(user.exec(std::string("PRAGMA journal_mode = ") + journal), "");
    EXPECT_EQ(user.exec("DROP TABLE data; CREATE TABLE data(name TEXT PRIMARY KEY, value TEXT)"),
              "");
    EXPECT_TRUE(good(add_columns(user, "data")));
  }

  static void make_table(const Connection& user, const std::string& table,
                         const ResourceName& resource) {
    EXPECT_EQ(user.exec("CREATE TABLE IF NOT EXISTS " + table + "(name PRIMARY KEY, value)"), "");
    EXPECT_TRUE(good(guard(user, table, resource)));
  }
  static Result<sql::Rows> run(sqlite3* db, const std::string& sql,
                               const sql::Parameters& parameters) {
    return sqlite::Connection(db).run(sql, parameters);
  }
  void restart() const {}  // the file is all there is
};

INSTANTIATE_TEST_SUITE_P(Sqlite, FenceConformance,
                         ::testing::Values(sql_fence_case<FencedFile, TransactionForm>("wal"),
                                           sql_fence_case<FencedFile, TransactionForm>("delete",
                                                                                       "delete"),
                                           sql_fence_case<FencedFile, TableForm>("table"),
                                           sql_fence_case<FencedFile, RowForm>("row")),
                         name_of_fence_case);

}  // namespace
}  // namespace leasehold::testing
