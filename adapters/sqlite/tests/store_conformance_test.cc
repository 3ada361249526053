#include "testing/store_conformance.h"

#include <sqlite3.h>

#include <thread>

#include "leasehold/detail/thread_safety.h"
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
  std::unique_ptr<Store> open_slow() override { return open(); }
  // Another program writes all the time.
  void answer_after(Millis time) override {
    writing_ = {};
    if (time == Millis(0)) return;
    sqlite3* opened = nullptr;
    sqlite3_open(folder_.file("locks.db").c_str(), &opened);
    sqlite3_exec(opened, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
    writing_ = std::jthread([opened, time](const std::stop_token& stop) {
      Mutex mutex;
      ConditionVariable never;
      const MutexLock lock(mutex);
      never.wait_for(mutex, stop, time, [] { return false; });
      sqlite3_close(opened);
    });
  }
  void restart() override {}  // no process outlives its connections

 private:
  TempFolder folder_;
  std::jthread writing_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreConformance,
                         ::testing::Values(StoreCase{
                             "file", [] { return std::make_unique<SqliteFile>(); }}),
                         name_of_store_case);

}  // namespace
}  // namespace leasehold::testing
