#include "cli/locks/live_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leasehold::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

LockStatus held(const std::string& lock) {
  LockStatus status{.lock = LockName::parse(lock).value()};
  status.holders.push_back({.request = RequestId::random(system_random()),
                            .token = TokenNumber::of(7).value(),
                            .owner = "me",
                            .held_for = Millis(61'000)});
  return status;
}

class LiveTableTest : public ::testing::Test {
 protected:
  std::string drawn() const {
    ::testing::internal::CaptureStdout();
    EXPECT_FALSE(table.draw());
    return ::testing::internal::GetCapturedStdout();
  }
  LiveTable table{StoreTraits{}};
};

TEST_F(LiveTableTest, IsNothingBeforeAnythingWasTold) {
  EXPECT_EQ(drawn(), "");
}

TEST_F(LiveTableTest, SaysWhyNothingIsSeenAndKeepsWhatWasSeenLast) {
  const std::vector<LockStatus> locks = {held("job")};
  EXPECT_FALSE(table.take(locks));
  EXPECT_THAT(drawn(), AllOf(HasSubstr("held: 1"), HasSubstr("job"), HasSubstr("1m01s")));
  EXPECT_FALSE(table.take(fail(ErrorCode::unavailable, "the server is away")));
  EXPECT_THAT(drawn(), AllOf(HasSubstr("cannot be seen: the server is away"), HasSubstr("job")));
  EXPECT_FALSE(table.take(locks));
  EXPECT_THAT(drawn(), Not(HasSubstr("cannot be seen")));
}

TEST_F(LiveTableTest, EndsIfNothingCanEverBeSeen) {
  const auto ending = table.take(fail(ErrorCode::unsupported, "this store shows no locks"));
  ASSERT_TRUE(ending);
  EXPECT_EQ(ending->number(), 77);
}

}  // namespace
}  // namespace leasehold::cli
