#include "exit_status.h"

#include "cli_fixture.h"

namespace leasehold::cli {
namespace {

TEST(ExitStatusOf, EveryErrorCode) {
  EXPECT_EQ(exit_status(ErrorCode::busy), 75);
  EXPECT_EQ(exit_status(ErrorCode::timeout), 75);
  EXPECT_EQ(exit_status(ErrorCode::cancelled), 130);
  EXPECT_EQ(exit_status(ErrorCode::unavailable), 69);
  EXPECT_EQ(exit_status(ErrorCode::outcome_unknown), 74);
  EXPECT_EQ(exit_status(ErrorCode::fenced_out), 76);
  EXPECT_EQ(exit_status(ErrorCode::lost), 76);
  EXPECT_EQ(exit_status(ErrorCode::unsafe_for_correctness), 77);
  EXPECT_EQ(exit_status(ErrorCode::unsupported), 77);
  EXPECT_EQ(exit_status(ErrorCode::invalid), 64);
  EXPECT_EQ(exit_status(ErrorCode::internal), 70);
}

}  // namespace
}  // namespace leasehold::cli
