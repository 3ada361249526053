#include "leasehold/process/exit_status.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace leasehold::process {
namespace {

TEST(ExitStatus, KeepsCodesAndSignalsApart) {
  EXPECT_NE(ExitStatus::exited(9), ExitStatus::signalled(9));
  EXPECT_TRUE(ExitStatus::exited(0).success());
  EXPECT_FALSE(ExitStatus::exited(1).success());
  EXPECT_FALSE(ExitStatus::signalled(0).success());
}

TEST(ExitStatus, ReadsAsAShellReportsIt) {
  EXPECT_EQ(ExitStatus::exited(3).shell_status(), 3);
  EXPECT_EQ(ExitStatus::signalled(SIGTERM).shell_status(), 143);
  EXPECT_EQ(ExitStatus::exited(3).describe(), "exited with status 3");
  EXPECT_EQ(ExitStatus::signalled(SIGKILL).describe(), "was ended by signal 9 (Killed)");
}

}  // namespace
}  // namespace leasehold::process
