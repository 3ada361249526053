#include "leasehold/sqlite/once.h"

#include <functional>
#include <utility>

#include "user_database.h"

namespace leasehold::sqlite {
namespace {

using namespace std::chrono_literals;

class OnceTest : public ::testing::Test {
 protected:
  OnceTest() {
    EXPECT_EQ(user_.exec("PRAGMA journal_mode = wal; CREATE TABLE data(value)"), "");
    EXPECT_TRUE(good(install_once(user_.get())));
  }

  Once once() const { return Once::open(user_.get()).value(); }
  std::string rows() const { return user_.ask("SELECT count(*) FROM data"); }

  TempFolder folder_;
  std::string path_ = folder_.file("data.db");
  UserConnection user_{path_};
};

auto add_row(std::string result) {
  return [result](OpenTransaction& open) -> Result<std::string> {
    sqlite3_exec(open.handle(), "INSERT INTO data VALUES(1)", nullptr, nullptr, nullptr);
    return result;
  };
}

TEST_F(OnceTest, WithoutWaitingAWriterIsBusy) {
  const UserConnection other(path_);
  ASSERT_EQ(other.exec("BEGIN IMMEDIATE"), "");
  ASSERT_EQ(user_.exec("PRAGMA busy_timeout = 8000"), "");
  const auto began = std::chrono::steady_clock::now();
  const auto busy = once().run("k", "", add_row(""), {.wait = 0ms});
  EXPECT_TRUE(bad(busy, ErrorCode::busy));
  const auto late = once().run("k", "", add_row(""), {.wait = 20ms});
  EXPECT_TRUE(bad(late, ErrorCode::timeout));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 7s) << "the connection has waited";
  ASSERT_EQ(other.exec("ROLLBACK"), "");
  EXPECT_EQ(user_.ask("PRAGMA busy_timeout"), "8000");
}

// Runs `then` on another connection just before this one asks for the write lock.
struct BeforeTheLock {
  std::function<void()> then;

  static int trace(unsigned, void* self, void*, void* sql) {
    auto& then = static_cast<BeforeTheLock*>(self)->then;
    const bool begins = std::string_view(static_cast<const char*>(sql)).starts_with("BEGIN");
    if (begins && then) std::exchange(then, nullptr)();
    return 0;
  }
};

TEST_F(OnceTest, ResultStoredBetweenTheLookAndTheLockIsReplayed) {
  const UserConnection other(path_);
  BeforeTheLock before{[&] {
    EXPECT_FALSE(Once::open(other.get())->run("k", "", add_row("first")).value().replayed);
  }};
  sqlite3_trace_v2(user_.get(), SQLITE_TRACE_STMT, BeforeTheLock::trace, &before);
  const auto answer = once().run("k", "", add_row("second"));
  ASSERT_TRUE(good(answer));
  EXPECT_TRUE(answer->replayed);
  EXPECT_EQ(answer->result, "first");
  EXPECT_EQ(rows(), "1");
}

TEST_F(OnceTest, StoredResultIsAnsweredWhileAnotherWrites) {
  ASSERT_TRUE(good(once().run("k", "", add_row("r"))));
  const UserConnection other(path_);
  ASSERT_EQ(other.exec("BEGIN IMMEDIATE"), "");
  EXPECT_TRUE(once().run("k", "", add_row(""), {.wait = 0ms}).value().replayed);
  ASSERT_EQ(other.exec("ROLLBACK"), "");
}

TEST_F(OnceTest, MissingOrOtherVersionIsUnavailable) {
  const UserConnection bare(folder_.file("bare.db"));
  EXPECT_TRUE(bad(Once::open(bare.get()), ErrorCode::unavailable));
  EXPECT_TRUE(good(install_once(user_.get())));
  ASSERT_EQ(user_.exec("UPDATE leasehold_version SET version = 9 WHERE part = 'once'"), "");
  EXPECT_TRUE(bad(Once::open(user_.get()), ErrorCode::unavailable));
}

}  // namespace
}  // namespace leasehold::sqlite
