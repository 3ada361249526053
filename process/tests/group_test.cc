#include "leasehold/process/group.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "leasehold/process/child.h"
#include "proc_stat.h"

namespace leasehold::process {
namespace {

using namespace std::chrono_literals;

// A leader that leaves one background member behind; `member` prints "up" when it is ready.
Child leave_behind(const std::string& member) {
  adopt_orphans();
  auto child = Child::start({.argv = {"/bin/sh", "-c", "sh -c '" + member + "' & exit 0"},
                             .out = Piped{},
                             .placement = Placement::own_group});
  EXPECT_TRUE(child);
  EXPECT_EQ(child->wait_for(10s), ExitStatus::exited(0));
  EXPECT_EQ(read_until(child->out().get(), "up\n", within(10s)), "up\n");
  return std::move(*child);
}

bool nobody_in(const Child& leader) {
  return kill(-leader.pid(), 0) != 0 && errno == ESRCH;
}

constexpr const char* kStubborn = "trap \"\" TERM; echo up; while :; do sleep 60; done";

TEST(Group, WhoHasEndedIsNotFound) {
  Child leader = leave_behind("echo up");
  EXPECT_EQ(read_all(leader.out().get(), within(10s)), "") << "the member has ended";
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PGID, static_cast<id_t>(leader.pid()), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(end_group(leader, within(10s)).found, 0u);
  EXPECT_TRUE(nobody_in(leader));
}

// Its parent has left the group.
TEST(Group, WaitsForMembersThatAreNobodysOrphan) {
  Child leader = leave_behind(
      "perl -e \"if (fork) { setpgrp; print qq(up\\n); close STDOUT; wait } "
      "else { sleep 600 }\"");
  const GroupEnd end = end_group(leader, within(10s));
  EXPECT_EQ(end.found, 1u);
  EXPECT_TRUE(nobody_in(leader));
}

TEST(Group, DoesNotWaitForTheDeadThatNobodyReaps) {
  adopt_orphans();
  const std::string careless_parent =
      "if (fork) { setpgrp; print qq(up\\n); close STDOUT; alarm 10; readline STDIN } "
      "else { sleep 600 }";
  auto leader = Child::start(
      {.argv = {"/bin/sh", "-c", "exec 3<&0; perl -e '" + careless_parent + "' <&3 & exit 0"},
       .in = Piped{},
       .out = Piped{},
       .placement = Placement::own_group});
  ASSERT_TRUE(leader);
  EXPECT_EQ(read_until(leader->out().get(), "up\n", within(10s)), "up\n");
  EXPECT_TRUE(end_group(*leader, within(10ms)).killed);
  EXPECT_FALSE(nobody_in(*leader)) << "its parent has reaped it";
}

TEST(Group, AsksFirst) {
  Child leader = leave_behind("trap \"echo asked; exit\" TERM; echo up; while :; do :; done");
  const GroupEnd end = end_group(leader, within(10s));
  EXPECT_GE(end.found, 1u);
  EXPECT_FALSE(end.killed);
  EXPECT_EQ(read_all(leader.out().get(), within(10s)), "asked\n");
}

TEST(Group, KillsWhoDoesNotListen) {
  Child leader = leave_behind(kStubborn);
  const GroupEnd end = end_group(leader, within(50ms));
  EXPECT_TRUE(end.killed);
  EXPECT_TRUE(nobody_in(leader));
}

// Some die between two looks of end_group().
TEST(Group, ReapsAllThatItKills) {
  for (int round = 0; round < 50; ++round) {
    Child leader = leave_behind(
        "perl -e \"for (1..20) { fork or sleep 600 } print qq(up\\n); close STDOUT; sleep 600\"");
    EXPECT_TRUE(end_group(leader, within(0ms)).killed);
    ASSERT_TRUE(nobody_in(leader)) << round;
  }
}

// Its threads may still write while the process is shown as a zombie.
TEST(Group, TheOtherThreadsOfADeadFirstThreadLive) {
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    std::thread([] { sleep(600); }).detach();
    syscall(SYS_exit, 0);  // of this thread alone
  }
  while (read_stat(pid)->state != 'Z') std::this_thread::yield();
  EXPECT_TRUE(read_stat(pid)->lives());
  kill(pid, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(read_stat(pid)->lives());
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED), 0);
}

TEST(Group, KillsAtOnceInAHurry) {
  Child leader = leave_behind(kStubborn);
  const Fd hurry(eventfd(1, EFD_CLOEXEC));
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(end_group(leader, within(60s), hurry.get()).killed);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 30s);
}

TEST(Group, EndsTheStoppedToo) {
  Child leader = leave_behind("trap \"exit\" TERM; echo up; kill -STOP $$; sleep 60");
  EXPECT_FALSE(end_group(leader, within(10s)).killed);
  EXPECT_TRUE(nobody_in(leader));
}

TEST(Group, TheLeaderNeedNotBeReapedBefore) {
  adopt_orphans();
  auto leader = Child::start({.argv = {"/bin/sh", "-c", "sleep 60 & exit 3"},
                              .out = Piped{},
                              .placement = Placement::own_group});
  ASSERT_TRUE(leader);
  ASSERT_TRUE(wait_readable(leader->pidfd(), within(10s)));
  EXPECT_EQ(end_group(*leader, within(10s)).found, 1u);
  EXPECT_EQ(leader->wait(), ExitStatus::exited(3));
}

TEST(Group, ReapsStrangersOnly) {
  auto mine = Child::start({.argv = {"sleep", "60"}});
  auto other = Child::start({.argv = {"true"}});
  ASSERT_TRUE(mine && other);
  ASSERT_TRUE(wait_readable(other->pidfd(), within(10s)));
  reap_all_but(mine->pid());
  EXPECT_FALSE(other->wait().known());
  mine->signal(SIGKILL);
  ASSERT_TRUE(wait_readable(mine->pidfd(), within(10s)));
  reap_all_but(mine->pid());
  EXPECT_EQ(mine->wait(), ExitStatus::signalled(SIGKILL));
}

TEST(Group, NothingLeftIsNothingToDo) {
  auto child = Child::start({.argv = {"true"}, .placement = Placement::own_group});
  ASSERT_TRUE(child);
  child->wait();
  EXPECT_EQ(end_group(*child, within(10s)).found, 0u);
}

}  // namespace
}  // namespace leasehold::process
