#include "testing/store_conformance.h"
#include "leasehold/sqlite/adapter.h"
#include "leasehold/url.h"

namespace leasehold::testing {
namespace {

class SqliteFile final : public StoreUnderTest {
 public:
  std::string url() override { return "sqlite:" + folder_.file("locks.db"); }
  std::unique_ptr<Store> open() override {
    return std::move(sqlite::adapters().front().open_store(Url::parse(url()).value(), {}).value());
  }
  void restart() override {}  // no process outlives its connections

 private:
  TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreConformance,
                         ::testing::Values(StoreCase{
                             "file", [] { return std::make_unique<SqliteFile>(); }}),
                         name_of_store_case);

}  // namespace
}  // namespace leasehold::testing
