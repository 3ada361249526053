#include "leasehold/sqlite/versioned_row.h"

#include <gmock/gmock.h>

#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "user_database.h"

namespace leasehold::sqlite {
namespace {

using namespace std::chrono_literals;
using Value = VersionedRow::Value;

class VersionedRowTest : public ::testing::Test {
 protected:
  VersionedRowTest() {
    EXPECT_EQ(user_.exec("PRAGMA journal_mode = wal;"
                         "CREATE TABLE stock(id TEXT UNIQUE, amount integer CHECK (amount >= 0), "
                         "version INTEGER DEFAULT 0);"
                         "INSERT INTO stock(id, amount) VALUES('bolt', 100), ('nut', 5)"),
              "");
  }

  std::string place() const { return path_; }
  static VersionedRow row_of(const UserConnection& user) {
    return VersionedRow::open(user.get(), {.table = "stock", .key = "bolt", .columns = {"amount"}})
        .value();
  }
  std::string stock() const { return user_.ask("SELECT amount FROM stock WHERE id = 'bolt'"); }

  TempFolder folder_;
  std::string path_ = folder_.file("data.db");
  UserConnection user_{path_};
};

Result<Value> one_less(const Value& seen) {
  const int left = std::stoi(seen.at(0).value());
  if (left == 0) return fail(ErrorCode::invalid, "none left");
  return Value{std::to_string(left - 1)};
}

TEST_F(VersionedRowTest, ChangesTheRowAndItsVersion) {
  const auto changed = compare_and_set(row_of(user_), one_less);
  ASSERT_TRUE(good(changed));
  EXPECT_EQ(changed->value.at(0), "99");
  EXPECT_EQ(changed->conflicts, 0);
  EXPECT_EQ(stock(), "99");
  EXPECT_EQ(user_.ask("SELECT version FROM stock WHERE id = 'bolt'"), "1");
  EXPECT_EQ(user_.ask("SELECT version FROM stock WHERE id = 'nut'"), "0") << "no other row";
}

TEST_F(VersionedRowTest, WriteInBetweenIsSeenAndNotLost) {
  const UserConnection other(place());
  int calls = 0;
  const auto changed = compare_and_set(row_of(user_), [&](const Value& seen) {
    if (++calls == 1) {
      EXPECT_TRUE(good(compare_and_set(row_of(other), one_less)));
    }
    return one_less(seen);
  });
  ASSERT_TRUE(good(changed));
  EXPECT_EQ(changed->conflicts, 1);
  EXPECT_EQ(stock(), "98");
}

// The value is the same again, but not the version.
TEST_F(VersionedRowTest, ChangeThereAndBackIsAConflict) {
  const auto seen = row_of(user_).read().value();
  const auto set = [&](const char* value) {
    return compare_and_set(
        row_of(user_), [&](const Value&) -> Result<Value> { return Value{std::string(value)}; });
  };
  ASSERT_TRUE(good(set("1")));
  ASSERT_TRUE(good(set("100")));
  EXPECT_FALSE(row_of(user_).write(seen, {"50"}).value());
  EXPECT_EQ(stock(), "100");
}

TEST_F(VersionedRowTest, RacingThreadsLoseNothing) {
  constexpr int threads = 4;
  constexpr int each = 10;
  std::latch start(threads);
  std::atomic<int> done = 0;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        const UserConnection mine(place());
        start.arrive_and_wait();
        for (int n = 0; n < each; ++n) {
          if (compare_and_set(row_of(mine), one_less, {.attempts = 10'000, .wait = 60s})) ++done;
        }
      });
    }
  }
  EXPECT_EQ(done, threads * each);
  EXPECT_EQ(stock(), std::to_string(100 - threads * each));
}

TEST_F(VersionedRowTest, NullGoesThereAndBack) {
  const auto empty = [](const Value&) -> Result<Value> { return Value{std::nullopt}; };
  ASSERT_TRUE(good(compare_and_set(row_of(user_), empty)));
  EXPECT_EQ(user_.ask("SELECT amount IS NULL FROM stock WHERE id = 'bolt'"), "1");
  EXPECT_EQ(row_of(user_).read()->value.at(0), std::nullopt);
}

TEST_F(VersionedRowTest, WrongInputIsInvalid) {
  const auto open = [&](VersionedRowOptions options) {
    auto row = VersionedRow::open(user_.get(), std::move(options));
    if (!row) return Status(fail(row.error()));
    auto seen = row->read();
    return seen ? Status() : Status(fail(seen.error()));
  };
  EXPECT_TRUE(good(open({.table = "stock", .key = "bolt", .columns = {"amount"}})));
  EXPECT_TRUE(bad(open({.table = "stok", .key = "bolt", .columns = {}}), ErrorCode::invalid));
  EXPECT_TRUE(bad(open({.table = "stock", .key = "screw", .columns = {}}), ErrorCode::invalid));
  EXPECT_TRUE(
      bad(open({.table = "stock", .key = "bolt", .columns = {"amonut"}}), ErrorCode::invalid));
  EXPECT_TRUE(
      bad(open({.table = "stock", .key = "bolt", .columns = {}, .version_column = "amuont"}),
          ErrorCode::invalid));
  EXPECT_TRUE(bad(open({.table = "stock", .key = "0", .columns = {}, .key_column = "version"}),
                  ErrorCode::invalid))
      << "two rows";
  const auto seen = row_of(user_).read().value();
  EXPECT_TRUE(bad(row_of(user_).write(seen, {}), ErrorCode::invalid));
  EXPECT_TRUE(bad(row_of(user_).write(seen, {"1", "2"}), ErrorCode::invalid));
  EXPECT_TRUE(bad(row_of(user_).write(seen, {"-1"}), ErrorCode::invalid)) << "a CHECK";
  ASSERT_EQ(user_.exec("UPDATE stock SET version = NULL WHERE id = 'bolt'"), "");
  EXPECT_TRUE(bad(row_of(user_).read(), ErrorCode::invalid));
  EXPECT_EQ(stock(), "100");
}

TEST_F(VersionedRowTest, RowThatIsGoneIsTold) {
  const auto changed = compare_and_set(row_of(user_), [&](const Value& seen) {
    EXPECT_EQ(user_.exec("DELETE FROM stock"), "");
    return one_less(seen);
  });
  EXPECT_TRUE(bad(changed, ErrorCode::invalid));
}

}  // namespace
}  // namespace leasehold::sqlite
