#include "leasehold/process/session.h"

#include <gmock/gmock.h>
#include <signal.h>

#include "leasehold/process/child.h"

namespace leasehold::process {
namespace {

using namespace std::chrono_literals;

Child start(const std::string& script) {
  auto child = Child::start({.argv = {"bash", "-c", script},
                             .in = Piped{},
                             .out = Piped{},
                             .placement = Placement::own_session});
  EXPECT_TRUE(child) << child.error().message;
  EXPECT_NE(read_until(child->out().get(), "ready", within(20s)).find("ready"), std::string::npos);
  return std::move(*child);
}

// A leader, and a child in a process group of its own.
constexpr const char* kTwoGroups = "set -m; sleep 100 & echo ready; wait";

TEST(SessionTest, FindsMembersOfAllGroups) {
  Child child = start(kTwoGroups);
  const auto members = living_in_session(child.pid());
  ASSERT_EQ(members.size(), 2);
  for (const SessionMember& each : members) {
    EXPECT_FALSE(each.stopped);
    if (each.pid != child.pid()) {
      EXPECT_EQ(each.parent, child.pid());
    }
  }
  kill_session(child.pid());
}

TEST(SessionTest, StopsAllAndThoseWhoAreBornMeanwhile) {
  Child child = start("echo ready; while :; do (exec 3<&0); done");
  EXPECT_TRUE(stop_session(child.pid(), within(20s)));
  const auto members = living_in_session(child.pid());
  EXPECT_FALSE(members.empty());
  for (const SessionMember& each : members) EXPECT_TRUE(each.stopped);
  kill_session(child.pid());
}

TEST(SessionTest, WhoIsStoppedCanGoOn) {
  Child child = start("echo ready; read line; exit 7");
  ASSERT_TRUE(stop_session(child.pid(), within(20s)));
  EXPECT_TRUE(write_all(child.in().get(), "go\n"));
  for (const SessionMember& each : living_in_session(child.pid())) {
    EXPECT_TRUE(each.signal(SIGCONT));
  }
  EXPECT_EQ(child.wait_for(20s), ExitStatus::exited(7));
}

TEST(SessionTest, KillsAllGroups) {
  Child child = start(kTwoGroups);
  kill_session(child.pid());
  EXPECT_TRUE(living_in_session(child.pid()).empty());
  EXPECT_EQ(child.wait_for(20s), ExitStatus::signalled(SIGKILL));
}

}  // namespace
}  // namespace leasehold::process
