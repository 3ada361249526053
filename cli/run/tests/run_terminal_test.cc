// `leasehold run` typed into an interactive shell.
#include <unistd.h>

#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

class RunTerminalTest : public CliTest {
 protected:
  RunTerminalTest() : pty_(process::make_pty()), shell_(start_shell()) { expect("P> "); }

  void type(const std::string& text) { write_all(pty_.master.get(), text); }

  // Waits for output; what comes after it is kept for the next call.
  std::string expect(const std::string& text) {
    const auto deadline = within(kPatience);
    while (seen_.find(text) == std::string::npos) {
      if (!wait_readable(pty_.master.get(), deadline)) {
        ADD_FAILURE() << "no '" << text << "' in:\n" << seen_;
        break;
      }
      char buffer[1024];
      const ssize_t got = ::read(pty_.master.get(), buffer, sizeof buffer);
      if (got <= 0) break;
      seen_.append(buffer, static_cast<std::size_t>(got));
    }
    const std::size_t at = seen_.find(text);
    const std::size_t end = at == std::string::npos ? seen_.size() : at + text.size();
    std::string before = seen_.substr(0, end);
    seen_.erase(0, end);
    return before;
  }

  // Written so that the echo of the typed line does not look like the output.
  void expect_status(int status) {
    type("echo st\"\"atus=$?.\n");
    expect("status=" + std::to_string(status) + ".");
  }

  const std::string ctrl_c = "\x03";
  const std::string ctrl_z = "\x1a";

 private:
  Child start_shell() const {
    process::Command what = command({"bash", "--norc", "--noprofile", "-i"});
    what.environment.insert(
        what.environment.end(),
        {{"PS1", "P> "}, {"TERM", "dumb"}, {"HISTFILE", std::nullopt}, {"INPUTRC", "/dev/null"}});
    what.in = what.out = what.err = process::FromFd{pty_.slave.get()};
    what.placement = process::Placement::own_session;
    what.terminal = pty_.slave.get();
    auto child = Child::start(what);
    EXPECT_TRUE(child);
    return std::move(*child);
  }

  process::Pty pty_;
  Child shell_;
  std::string seen_;
};

TEST_F(RunTerminalTest, TheCommandCanUseTheTerminal) {
  type("leasehold run x -- sh -c 'echo re\"\"ady; read l; echo got-$l; exit 3'\n");
  expect("ready");
  type("word\n");
  expect("got-word");
  expect("P> ");
  expect_status(3);
}

TEST_F(RunTerminalTest, CtrlCReachesTheCommand) {
  type(
      "leasehold run x -- sh -c 'trap \"echo got-i\"\"nt; exit 3\" INT; sleep 600 & echo "
      "re\"\"ady; wait'\n");
  expect("ready");
  type(ctrl_c);
  expect("got-int");
  expect_status(3);
}

TEST_F(RunTerminalTest, CtrlCEndsTheCommand) {
  type("leasehold run x -- sh -c 'echo re\"\"ady; exec sleep 600'\n");
  expect("ready");
  type(ctrl_c);
  expect("P> ");
  expect_status(130);
}

TEST_F(RunTerminalTest, CtrlCEndsTheScriptAround) {
  write("script", "leasehold run x -- sh -c 'echo ready; exec sleep 600'\necho went-on\n");
  type("bash " + path("script") + "\n");
  expect("ready");
  type(ctrl_c);
  EXPECT_THAT(expect("P> "), Not(HasSubstr("went-on")));
  expect_status(130);
}

TEST_F(RunTerminalTest, CtrlZGivesThePromptBackAndFgContinues) {
  type("leasehold run x -- sh -c 'echo re\"\"ady; read l; echo got-$l; exit 3'\n");
  expect("ready");
  type(ctrl_z);
  expect("Stopped");
  expect("P> ");
  type("fg\n");
  expect("leasehold run");
  type("word\n");
  expect("got-word");
  expect_status(3);
}

TEST_F(RunTerminalTest, CtrlZStopsTheScriptAround) {
  write("script", "leasehold run x -- sh -c 'echo ready; read l; echo got-$l'\necho went-on\n");
  type("bash " + path("script") + "\n");
  expect("ready");
  type(ctrl_z);
  expect("Stopped");
  expect("P> ");
  type("fg\n");
  type("word\n");
  expect("got-word");
  expect("went-on");
}

TEST_F(RunTerminalTest, BgContinuesInTheBackground) {
  ASSERT_EQ(shell("mkfifo " + path("go")).status, 0);
  type("leasehold run x -- sh -c 'echo re\"\"ady; read l < " + path("go") + "; echo got-$l'\n");
  expect("ready");
  type(ctrl_z);
  expect("Stopped");
  type("bg\n");
  expect("leasehold run");
  shell("echo word > " + path("go"));
  expect("got-word");
  type("wait; echo al\"\"one\n");
  expect("alone");
}

TEST_F(RunTerminalTest, AfterAStopLongerThanTheLeaseTheCommandIsEndedNotContinued) {
  type("leasehold run x --ttl 2s -- sh -c 'echo re\"\"ady; read l; echo wro\"\"ng'\n");
  expect("ready");
  type(ctrl_z);
  expect("Stopped");
  type("leasehold run x --wait 20s -- echo taken-ov\"\"er\n");
  expect("taken-over");
  type("fg\n");
  expect("the lease was lost");
  EXPECT_THAT(expect("P> "), Not(HasSubstr("wrong")));
  expect_status(76);
}

TEST_F(RunTerminalTest, InAPipelineTheTerminalIsGivenWhenItIsNeeded) {
  type("leasehold run x -- sh -c 'echo re\"\"ady; read l; echo got-$l' | cat\n");
  expect("ready");
  type("word\n");
  expect("got-word");
  expect("P> ");
  type("leasehold run x -- sh -c 'echo re\"\"ady; exec sleep 600' | cat\n");
  expect("ready");
  type(ctrl_c);
  expect("P> ");
}

TEST_F(RunTerminalTest, InAPipelineTheOthersKeepTheTerminal) {
  // The last program of the pipeline reads the keyboard while the command runs, as a pager does.
  type(
      "leasehold run x -- sh -c 'echo page; exec sleep 600' | "
      "sh -c 'read l; echo re\"\"ady; read key </dev/tty; echo got-$key'\n");
  expect("ready");
  type("q\n");
  expect("got-q");
  type(ctrl_c);
  expect("P> ");
}

TEST_F(RunTerminalTest, ARawTerminalIsRestoredWhenTheLeaseIsLost) {
  type("leasehold run x --ttl 3s -- sh -c 'stty -echo raw; printf re\"\"ady; exec sleep 600'\n");
  expect("ready");
  EXPECT_EQ(leasehold({"release", "x", "--force"}).status, 0);
  expect("the lease was lost");
  expect("P> ");
  type("stty -a | tr ' ' '\\n' | grep -x -e icanon -e echo | tr '\\n' '+'; echo .\n");
  expect("icanon+echo+.");
}

TEST_F(RunTerminalTest, ColoursOnlyOnATerminal) {
  type("TERM=xterm leasehold ls\n");
  EXPECT_THAT(expect("NAME"), HasSubstr("\033[1m"));
  expect("P> ");
  type("NO_COLOR=1 TERM=xterm leasehold ls\n");
  EXPECT_THAT(expect("NAME"), Not(HasSubstr("\033[1m")));
  EXPECT_THAT(leasehold({"ls"}).out, Not(HasSubstr("\033")));
}

}  // namespace
}  // namespace leasehold::cli
