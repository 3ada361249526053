// Signals and the command's process group.
#include <unistd.h>

#include <sstream>

#include "cli/tests/blockade.h"
#include "cli/tests/cli_fixture.h"
#include "testing/in_child.h"

namespace leasehold::cli {
namespace {

using RunSignalsTest = CliTest;

TEST_F(RunSignalsTest, EverySignalReachesTheCommand) {
  for (const auto& [number, name] : std::vector<std::pair<int, std::string>>{{SIGTERM, "TERM"},
                                                                             {SIGINT, "INT"},
                                                                             {SIGHUP, "HUP"},
                                                                             {SIGQUIT, "QUIT"},
                                                                             {SIGUSR1, "USR1"},
                                                                             {SIGUSR2, "USR2"},
                                                                             {SIGALRM, "ALRM"},
                                                                             {SIGWINCH, "WINCH"}}) {
    Child wrapper =
        start_ready(run_shell({"x"}, "trap 'exit 42' " + name + "; sleep 600 & echo ready; wait"));
    wrapper.signal(number);
    EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(42)) << name;
  }
}

TEST_F(RunSignalsTest, SignalsReachTheWholeGroup) {
  Child wrapper = start_ready(run_shell({"x"}, "sleep 60 & echo ready; wait"));
  wrapper.signal(SIGTERM);
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(128 + SIGTERM));
  EXPECT_TRUE(wait_readable(wrapper.out().get(), within(kPatience))) << "a grandchild survived";
}

TEST_F(RunSignalsTest, ContinueReachesAStoppedCommand) {
  const NoLeakCheck at_its_end;  // it hangs if signals keep coming
  Child wrapper = start_ready(run_shell({"x"}, "echo ready; kill -STOP $$; echo on; exit 5"));
  // The command stops itself at some moment; a second CONT never hurts, a lost one would.
  while (!wrapper.wait_for(20ms)) wrapper.signal(SIGCONT);
  EXPECT_EQ(wrapper.wait(), process::ExitStatus::exited(5));
}

// The standard signals that a command finds ignored. glibc keeps 32 and 33 to itself, and make(1)
// starts its children with them ignored.
std::uint64_t ignored(const Finished& grepped) {
  const std::string field = "SigIgn:\t";
  const std::size_t at = grepped.out.find(field);
  EXPECT_NE(at, std::string::npos) << grepped.out << grepped.err;
  if (at == std::string::npos) return ~std::uint64_t{0};
  return std::stoull(grepped.out.substr(at + field.size()), nullptr, 16) & 0x7fffffff;
}

TEST_F(RunSignalsTest, TheCommandFindsTheSignalsAsTheWrapperDid) {
  const std::string look = "grep -E 'Sig(Blk|Ign)' /proc/self/status";
  const Finished plain = shell("leasehold run x -- " + look);
  EXPECT_THAT(plain.out, HasSubstr("SigBlk:\t0000000000000000"));
  EXPECT_EQ(ignored(plain), ignored(shell(look)));
  const std::string nohup = "trap '' HUP; ";
  EXPECT_EQ(ignored(shell(nohup + "leasehold run x -- " + look)), ignored(plain) | 1u);
}

TEST_F(RunSignalsTest, ASignalWhileWaitingCancels) {
  Child holder = start_ready(run_shell({"x"}, "echo ready; read line"));
  const process::Pty pty = process::make_pty();
  process::Command what = command({LEASEHOLD_PROGRAM, "run", "x", "--wait", "10m", "--", "true"});
  what.err = process::FromFd{pty.slave.get()};
  auto waiter = Child::start(what);
  ASSERT_TRUE(waiter);
  const std::string told = read_until(pty.master.get(), "\n", within(kPatience));
  EXPECT_THAT(told, AllOf(HasSubstr("waiting for 'x', held by"), HasSubstr(":sh")));
  waiter->signal(SIGTERM);
  EXPECT_EQ(waiter->wait_for(kPatience), process::ExitStatus::exited(130));
  EXPECT_THAT(leasehold({"show", "x", "--json"}).out, HasSubstr("\"waiters\": []"))
      << "its place in the queue is given up";
}

// What perl, and daemons that do not want to wait, do to the programs they start.
constexpr const char* kSigchldIgnored = "perl -e '$SIG{CHLD}=\"IGNORE\"; exec @ARGV' ";

TEST_F(RunSignalsTest, TheStatusIsRightThoughTheCallerIgnoresSigchld) {
  const std::string run = std::string(kSigchldIgnored) + "leasehold run x ";
  EXPECT_EQ(shell(run + "-- sh -c 'exit 3'").status, 3);
  EXPECT_EQ(shell(run + "-- sh -c 'sleep 0.2; exit 4'").status, 4);
  EXPECT_EQ(shell(run + "-- sh -c 'kill -9 $$'").status, 137);
  EXPECT_EQ(shell(run + "--once k -- sh -c 'sleep 0.2; exit 5'").status, 5);
  EXPECT_EQ(shell(run + "--once k -- sh -c 'sleep 0.2; exit 5'").status, 5) << "as stored";
}

TEST_F(RunSignalsTest, TheCommandFindsSigchldIgnoredIfTheWrapperDid) {
  const std::string look = "grep SigIgn /proc/self/status";
  const std::uint64_t direct = ignored(shell(kSigchldIgnored + look));
  EXPECT_NE(direct, ignored(shell(look)));
  EXPECT_EQ(ignored(shell(kSigchldIgnored + ("leasehold run x -- " + look))), direct);
}

TEST_F(RunSignalsTest, AnIgnoredSignalDoesNotCancelTheWait) {
  Child holder = start_ready(run_shell({"x"}, "echo ready; read line"));
  process::Command what = command({"sh", "-c",
                                   "trap '' HUP INT QUIT TERM; exec leasehold run x -v --wait 30s "
                                   "-- echo ran"});
  what.out = Piped{};
  what.err = Piped{};
  auto waiter = Child::start(what);
  ASSERT_TRUE(waiter);
  EXPECT_THAT(read_until(waiter->err().get(), "waiting for", within(kPatience)),
              HasSubstr("waiting for"));
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) waiter->signal(number);
  EXPECT_FALSE(waiter->wait_for(300ms));
  holder.in().reset();
  const Finished done = finish(std::move(*waiter));
  EXPECT_EQ(done.out, "ran\n");
  EXPECT_EQ(done.status, 0) << done.err;
}

TEST_F(RunSignalsTest, VerboseTellsOfAWaitWithoutATerminalToo) {
  Child holder = start_ready(run_shell({"x", "--owner", "me"}, "echo ready; read line"));
  EXPECT_THAT(leasehold({"run", "x", "-v", "--wait", "3s", "--", "true"}).err,
              HasSubstr("waiting for 'x', held by me"));
  EXPECT_THAT(leasehold({"run", "x", "--wait", "600ms", "--", "true"}).err,
              Not(HasSubstr("waiting for 'x'")));
}

TEST_F(RunSignalsTest, ASignalCancelsThoughTheStoreHangs) {
  ASSERT_EQ(leasehold({"run", "x", "--", "true"}).status, 0);
  const Blockade silence(path("leasehold/locks.db"));
  for (const char* wait : {"0", "1m"}) {
    Child wrapper = start({"x", "--wait", wait, "--", "true"});
    EXPECT_FALSE(wrapper.wait_for(1s)) << errors();  // then it listens to signals
    wrapper.signal(SIGTERM);
    EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(130)) << errors();
  }
  EXPECT_THAT(errors(), HasSubstr("a signal came before the command was started"));
}

TEST_F(RunSignalsTest, AsTheFirstProcessItReapsOrphans) {
  const Finished done = finish(leasehold::testing::in_namespaces(
      {"--pid", "--fork", "--mount-proc"},
      {LEASEHOLD_PROGRAM, "run", "x", "--", "sh", "-c",
       "(sleep 0.1 &); (sleep 0.1 &); (sleep 0.2 &); sleep 0.5; ps -eo stat=; exit 6"}));
  EXPECT_EQ(done.status, 6) << done.err << leasehold::testing::kNamespacesNeed;
  EXPECT_THAT(done.out, Not(HasSubstr("Z")));
}

TEST_F(RunSignalsTest, WhatTheCommandLeavesRunningIsEnded) {
  Child wrapper = start(run_shell({"x"}, "sleep 600 & exit 3"));
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(3));
  EXPECT_TRUE(wait_readable(wrapper.out().get(), within(kPatience))) << "the sleep goes on";
  EXPECT_THAT(errors(), HasSubstr("ended 1 process that the command left running"));
}

TEST_F(RunSignalsTest, TheLockIsHeldUntilTheLastOfTheGroupHasEnded) {
  // The straggler needs a while to end; meanwhile nobody else may have the lock.
  const std::string straggler = "trap 'echo busy; read l <" + path("go") +
                                "; echo over; exit' TERM; echo ready; "
                                "while :; do sleep 0.05; done";
  ASSERT_EQ(shell("mkfifo " + path("go")).status, 0);
  write("straggler", straggler);
  Child wrapper = start_ready(run_shell({"x", "--ttl", "1m", "--grace", "20s"},
                                        "sh " + path("straggler") + " & read l; exit 0"));
  wrapper.in().reset();
  EXPECT_EQ(read_until(wrapper.out().get(), "busy\n", within(kPatience)), "busy\n");
  EXPECT_EQ(leasehold({"run", "x", "--", "true"}).status, 75);
  shell("echo > " + path("go"));
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(0));
  EXPECT_EQ(leasehold({"run", "x", "--", "true"}).status, 0);
}

TEST_F(RunSignalsTest, AStubbornLeftoverIsKilledAfterTheGrace) {
  Child wrapper = start_ready(
      run_shell({"x", "--grace", "100ms"},
                "sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1; done' & read l; exit 0"));
  wrapper.in().reset();
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(0));
  EXPECT_THAT(errors(), HasSubstr("with SIGKILL"));
}

TEST_F(RunSignalsTest, AKilledWrapperTakesTheCommandWithIt) {
  Child wrapper = start_ready(run_shell({"x"}, "echo ready; exec sleep 600"));
  wrapper.signal(SIGKILL);
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::signalled(SIGKILL));
  EXPECT_TRUE(wait_readable(wrapper.out().get(), within(kPatience))) << "the command goes on";
}

TEST_F(RunSignalsTest, TheCommandLeadsItsOwnGroup) {
  const Finished done = leasehold({"run", "x", "--", "sh", "-c", "ps -o pgid= -p $$; echo $$"});
  std::istringstream words(done.out);
  std::string group;
  std::string pid;
  words >> group >> pid;
  EXPECT_EQ(group, pid);
}

}  // namespace
}  // namespace leasehold::cli
