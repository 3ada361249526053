// What happens to the command when its lease ends under it.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "cli/tests/blockade.h"
#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

class RunLostTest : public CliTest {
 protected:
  // A grandchild in the group keeps stdout open: the stream ends when the whole group has ended.
  static constexpr const char* kFamily = "sleep 600 & echo ready; wait";

  void expect_group_gone(Child& wrapper) const {
    EXPECT_EQ(read_until(wrapper.out().get(), "\x01", within(kPatience)).find("late"),
              std::string::npos);
    EXPECT_TRUE(wait_readable(wrapper.out().get(), within(0s))) << "a grandchild survived";
  }
};

TEST_F(RunLostTest, ForceReleaseEndsTheWholeGroup) {
  Child wrapper = start_ready(run_shell({"x", "--ttl", "3s"}, kFamily));
  const Finished taken = leasehold({"release", "x", "--force"});
  EXPECT_EQ(taken.status, 0) << taken.err;
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(76));
  expect_group_gone(wrapper);
  EXPECT_THAT(errors(), AllOf(HasSubstr("the lease was lost"), HasSubstr("'x'")));
}

TEST_F(RunLostTest, AFrozenWrapperEndsTheGroupWhenItWakesTooLate) {
  Child wrapper = start_ready(run_shell({"x", "--ttl", "2s"}, kFamily));
  wrapper.signal(SIGSTOP);
  const Finished next = leasehold({"run", "x", "--wait", "20s", "--", "echo", "next"});
  EXPECT_EQ(next.out, "next\n") << next.err;
  EXPECT_FALSE(wait_readable(wrapper.out().get(), within(0s))) << "frozen: nothing ended yet";
  wrapper.signal(SIGCONT);
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(76)) << errors();
  expect_group_gone(wrapper);
}

TEST_F(RunLostTest, AStubbornGroupIsDeadBeforeTheDeadline) {
  constexpr auto ttl = 3s;
  // Only the group has the pipe open: it hangs up when the last of them has ended.
  ASSERT_EQ(mkfifo(path("alive").c_str(), 0600), 0);
  const process::Fd alive(open(path("alive").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  Child wrapper = start_ready(
      run_shell({"x", "--ttl", "3s", "--grace", "1s"},
                "exec 3>" + path("alive") +
                    "; trap 'echo asked' TERM; sh -c 'trap \"\" TERM; while :; do sleep 1; done' & "
                    "echo ready; while :; do wait; done"));
  const Blockade silence(path("leasehold/locks.db"));
  const auto blocked = std::chrono::steady_clock::now();  // the last renewal was before
  EXPECT_TRUE(wait_readable(alive.get(), within(kPatience)));
  EXPECT_LT(std::chrono::steady_clock::now() - blocked, ttl);
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(76));
  EXPECT_EQ(read_all(wrapper.out().get(), within(kPatience)), "asked\n") << "SIGTERM first";
  EXPECT_THAT(errors(), AllOf(HasSubstr("(TERM)"), HasSubstr("(KILL): the lease ends")))
      << "before the deadline, not at it";
  EXPECT_THAT(errors(), HasSubstr("another process is writing")) << "the cause";
}

// The stream that ends with the command, and a stderr that somebody fills and nobody reads.
class RunLostUnheardTest : public RunLostTest {
 protected:
  void expect_end(int err) {
    process::Command what =
        command({LEASEHOLD_PROGRAM, "run", "x", "--ttl", "1s", "-v", "--", "sh", "-c",
                 "trap '' TERM; exec 2>/dev/null; echo ready; while :; do sleep 0.05; done"});
    what.out = Piped{};
    what.err = process::FromFd{err};
    auto wrapper = Child::start(what);
    ASSERT_TRUE(wrapper);
    ASSERT_EQ(read_until(wrapper->out().get(), "ready\n", within(kPatience)), "ready\n");
    const Blockade silence(path("leasehold/locks.db"));
    EXPECT_TRUE(wait_readable(wrapper->out().get(), within(kPatience))) << "the command goes on";
    EXPECT_EQ(wrapper->wait_for(kPatience), process::ExitStatus::exited(76));
  }
};

TEST_F(RunLostUnheardTest, EndsTheCommandThoughStderrIsAFullPipe) {
  const process::Pipe pipe = make_full_pipe();
  expect_end(pipe.write.get());
  EXPECT_EQ(fcntl(pipe.write.get(), F_GETFL) & O_NONBLOCK, 0) << "others share it";
}

TEST_F(RunLostUnheardTest, EndsTheCommandThoughTheTerminalIsStopped) {
  const process::Pty pty = process::make_pty();
  ASSERT_EQ(tcflow(pty.slave.get(), TCOOFF), 0);  // Ctrl-S
  expect_end(pty.slave.get());
  tcflow(pty.slave.get(), TCOON);
}

TEST_F(RunLostUnheardTest, EndsTheCommandThoughStderrIsAFullSocket) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const process::Fd mine(ends[0]);
  const process::Fd theirs(ends[1]);
  while (send(theirs.get(), "................", 16, MSG_DONTWAIT) > 0) {
  }
  expect_end(theirs.get());
}

TEST_F(RunLostTest, AStoppedCommandIsAskedToo) {
  Child wrapper = start_ready(run_shell(
      {"x", "--ttl", "2s", "--on-lost", "term"},
      "trap 'echo asked; exit 0' TERM; echo $$ > " + path("pid") + "; echo ready; kill -STOP $$"));
  const std::string stopped = "grep -q '^State:.T' /proc/$(cat " + path("pid") + ")/status";
  ASSERT_EQ(shell("until " + stopped + "; do sleep 0.01; done").status, 0);
  ASSERT_EQ(leasehold({"release", "x", "--force"}).status, 0);
  EXPECT_EQ(wrapper.wait_for(10s), process::ExitStatus::exited(76));
  EXPECT_EQ(read_until(wrapper.out().get(), "asked\n", within(0s)), "asked\n");
}

TEST_F(RunLostTest, AListeningCommandHasTheGraceToTidyUp) {
  Child wrapper = start_ready(run_shell({"x", "--ttl", "3s", "--grace", "1500ms"},
                                        "trap 'echo tidy; exit 0' TERM; echo ready; "
                                        "while :; do sleep 0.05; done"));
  const Blockade silence(path("leasehold/locks.db"));
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(76))
      << "not 0: it was cut short";
  EXPECT_EQ(read_all(wrapper.out().get(), within(kPatience)), "tidy\n");
  EXPECT_THAT(errors(), Not(HasSubstr("(KILL): the lease ends")))
      << "before the deadline, not at it";
}

TEST_F(RunLostTest, AShortSilenceOfTheStoreHarmsNobody) {
  Child wrapper = start_ready(run_shell({"x", "--ttl", "6s"}, "echo ready; read l; exit 4"));
  {
    const Blockade silence(path("leasehold/locks.db"));
    EXPECT_FALSE(wrapper.wait_for(1s)) << errors();
  }
  wrapper.in().reset();
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(4)) << errors();
}

TEST_F(RunLostTest, LateRenewalsAreTold) {
  Child wrapper = start_ready(run_shell({"x", "-v", "--ttl", "6s"}, "echo ready; read l"));
  const auto await = [&](const std::string& text) {
    while (errors().find(text) == std::string::npos) {
      ASSERT_FALSE(wrapper.wait_for(10ms)) << errors();
    }
  };
  {
    const Blockade silence(path("leasehold/locks.db"));
    await("the lease on 'x' has not been renewed yet; it lasts ");
  }
  await("the lease on 'x' was renewed late; it lasts ");
  wrapper.in().reset();
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(1)) << errors();
}

TEST_F(RunLostTest, SaysWhenTheStoreEndedTheLease) {
  Child wrapper = start_ready(run_shell({"x", "--ttl", "2s"}, "echo ready; read l"));
  ASSERT_EQ(leasehold({"release", "x", "--force"}).status, 0);
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(76));
  EXPECT_THAT(errors(), HasSubstr("before its time, as 'leasehold release --force' does"));
}

TEST_F(RunLostTest, OnLostTermNeverKills) {
  Child wrapper = start_ready(run_shell({"x", "--ttl", "2s", "--on-lost", "term"},
                                        "trap 'echo asked' TERM; echo ready; until [ -e " +
                                            path("go") + " ]; do sleep 0.05; done; exit 0"));
  ASSERT_EQ(leasehold({"release", "x", "--force"}).status, 0);
  EXPECT_EQ(read_until(wrapper.out().get(), "asked\n", within(kPatience)), "asked\n");
  EXPECT_FALSE(wrapper.wait_for(2500ms)) << "longer than the ttl, and not killed";
  write("go", "");
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(76));
}

TEST_F(RunLostTest, OnLostIgnoreOnlyTells) {
  Child wrapper = start_ready(
      run_shell({"x", "--ttl", "2s", "--on-lost", "ignore"}, "echo ready; read l; exit 8"));
  ASSERT_EQ(leasehold({"release", "x", "--force"}).status, 0);
  while (errors().find("the command goes on") == std::string::npos) {
    ASSERT_FALSE(wrapper.wait_for(10ms));
  }
  EXPECT_FALSE(wrapper.wait_for(500ms));
  write_all(wrapper.in().get(), "end\n");
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(8));
  EXPECT_THAT(errors(), AllOf(HasSubstr("the lease on 'x' was lost; the command goes on"),
                              HasSubstr("somebody else may have worked")));
}

TEST_F(RunLostTest, ALostLeaseIsNotRememberedAsDone) {
  Child wrapper = start_ready(run_shell({"x", "--ttl", "2s", "--once", "k"}, "echo ready; read l"));
  ASSERT_EQ(leasehold({"release", "x", "--force"}).status, 0);
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(76));
  Child again = start_ready(run_shell({"x", "--ttl", "2s", "--once", "k"}, "echo ready; read l"));
  EXPECT_FALSE(again.poll());
}

TEST_F(RunLostTest, TheSuccessorIsNotHurt) {
  Child wrapper = start_ready(run_shell({"x", "--ttl", "2s"}, kFamily));
  wrapper.signal(SIGSTOP);
  Child next = start_ready(run_shell({"x", "--wait", "20s"}, "echo ready; read l; exit 2"));
  wrapper.signal(SIGCONT);
  EXPECT_EQ(wrapper.wait_for(kPatience), process::ExitStatus::exited(76));
  EXPECT_EQ(leasehold({"run", "x", "--", "true"}).status, 75) << "the successor still holds it";
  next.in().reset();
  EXPECT_EQ(next.wait_for(kPatience), process::ExitStatus::exited(2));
}

}  // namespace
}  // namespace leasehold::cli
