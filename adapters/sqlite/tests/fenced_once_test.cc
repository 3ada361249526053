#include "leasehold/sqlite/fenced_once.h"

#include <gmock/gmock.h>

#include <string>

#include "leasehold/sqlite/once.h"
#include "user_database.h"

namespace leasehold::sqlite {
namespace {

using namespace std::chrono_literals;

Result<std::string> nothing(OpenTransaction&) {
  return "r";
}

class FencedOnceTest : public ::testing::Test {
 protected:
  FencedOnceTest() {
    EXPECT_EQ(user_.exec("PRAGMA journal_mode = wal; CREATE TABLE data(value)"), "");
    EXPECT_TRUE(good(install_fence(user_.get())));
    EXPECT_TRUE(good(install_once(user_.get())));
  }

  static FencedOnce fenced(const UserConnection& user) {
    return FencedOnce::open(user.get(), "ledger").value();
  }
  TempFolder folder_;
  std::string path_ = folder_.file("data.db");
  UserConnection user_{path_};
};

TEST_F(FencedOnceTest, AnotherWriterIsWaitedForAsTheOptionsSay) {
  const UserConnection other(path_);
  ASSERT_EQ(other.exec("BEGIN IMMEDIATE"), "");
  ASSERT_EQ(user_.exec("PRAGMA busy_timeout = 8000"), "");
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(
      bad(fenced(user_).run(token_of(33, '1'), "k", "", nothing, {.wait = 0ms}), ErrorCode::busy));
  EXPECT_TRUE(bad(fenced(user_).run(token_of(33, '1'), "k", "", nothing, {.wait = 20ms}),
                  ErrorCode::timeout));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 7s) << "the connection has waited";
  ASSERT_EQ(other.exec("ROLLBACK"), "");
  EXPECT_EQ(user_.ask("PRAGMA busy_timeout"), "8000");
}

}  // namespace
}  // namespace leasehold::sqlite
