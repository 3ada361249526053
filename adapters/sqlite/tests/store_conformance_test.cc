#include "testing/mode_conformance.h"
#include "testing/partitions_conformance.h"

#include <gmock/gmock.h>
#include <sqlite3.h>

#include <thread>

#include "kit/threads/thread_safety.h"
#include "leasehold/sqlite/adapter.h"
#include "leasehold/url.h"
#include "testing/lock_patterns_conformance.h"
#include "testing/raw_store.h"

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
  // Two minutes pass, and then others come by.
  void sweep(const std::string& lock) override {
    sqlite3* opened = nullptr;
    sqlite3_open(folder_.file("locks.db").c_str(), &opened);
    const std::string sql =
        "UPDATE lock SET expires_at = expires_at - 120000000000 WHERE name = '" + lock + "'";
    EXPECT_EQ(sqlite3_exec(opened, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(opened);
    RawStore passing(open(), "passing by");
    for (int i = 0; i < 200; ++i) {
      const RequestId request = new_request();
      ASSERT_TRUE(passing.acquire(request));
      ASSERT_EQ(passing.release(request), ReleaseReply::released);
    }
  }

 private:
  rig::TempFolder folder_;
  std::jthread writing_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreConformance,
                         ::testing::Values(StoreCase{
                             "file", [] { return std::make_unique<SqliteFile>(); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Sqlite, ModeConformance,
                         ::testing::Values(StoreCase{
                             "file", [] { return std::make_unique<SqliteFile>(); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Sqlite, PartitionsConformance,
                         ::testing::Values(StoreCase{
                             "file", [] { return std::make_unique<SqliteFile>(); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Sqlite, LockPatternsConformance,
                         ::testing::Values(StoreCase{
                             "file", [] { return std::make_unique<SqliteFile>(); }}),
                         name_of_store_case);

TEST(SqliteStoreTest, FileThatIsBeingWrittenIsADefiniteRefusal) {
  SqliteFile file;
  Client client(file.open());
  file.answer_after(std::chrono::hours(1));
  for (const Millis wait : {Millis(0), Millis(500)}) {
    // A machine that stalls for 50 ms at the end makes one unknown, not all of them.
    Error refused(ErrorCode::outcome_unknown, "");
    for (int i = 0; i < 10 && refused.code == ErrorCode::outcome_unknown; ++i) {
      refused = client.acquire("job", {.wait = wait, .store_timeout = Millis(1000)}).error();
    }
    EXPECT_EQ(refused.code, ErrorCode::unavailable) << to_string(refused);
    EXPECT_THAT(refused.message, ::testing::HasSubstr("another process is writing"));
  }
}

}  // namespace
}  // namespace leasehold::testing
