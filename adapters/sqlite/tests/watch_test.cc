#include "testing/watch_conformance.h"

#include "leasehold/sqlite/adapter.h"
#include "leasehold/url.h"

namespace leasehold::testing {
namespace {

class WatchedFile final : public StoreUnderTest {
 public:
  std::string url() override { return "sqlite:" + folder_.file("locks.db"); }
  std::unique_ptr<Store> open() override {
    return std::move(sqlite::adapters().front().open_store(Url::parse(url()).value(), {}).value());
  }
  std::unique_ptr<Store> open_slow() override { return open(); }
  void answer_after(Millis) override {}
  void restart() override {}

 private:
  rig::TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, WatchConformance,
                         ::testing::Values(StoreCase{
                             "file", [] { return std::make_unique<WatchedFile>(); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Sqlite, ElectionConformance,
                         ::testing::Values(StoreCase{
                             "file", [] { return std::make_unique<WatchedFile>(); }}),
                         name_of_store_case);

}  // namespace
}  // namespace leasehold::testing
