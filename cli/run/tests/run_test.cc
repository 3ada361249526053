#include <sys/stat.h>

#include <filesystem>

#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

using RunTest = CliTest;

TEST_F(RunTest, PassesTheExitStatusOn) {
  EXPECT_EQ(leasehold({"run", "x", "--", "true"}).status, 0);
  EXPECT_EQ(leasehold({"run", "x", "--", "sh", "-c", "exit 7"}).status, 7);
  EXPECT_EQ(leasehold({"run", "x", "--", "sh", "-c", "exit 255"}).status, 255);
}

TEST_F(RunTest, PassesASignalOnAsAShellDoes) {
  const Finished killed = leasehold({"run", "x", "--", "sh", "-c", "kill -9 $$"});
  EXPECT_EQ(killed.status, 137);
  EXPECT_EQ(leasehold({"run", "x", "--", "sh", "-c", "kill -TERM $$"}).status, 143);
}

TEST_F(RunTest, TellsNotFoundFromNotExecutable) {
  write("data", "text");
  const Finished missing = leasehold({"run", "x", "--", "no-such-program"});
  EXPECT_EQ(missing.status, 127);
  EXPECT_EQ(missing.err, "leasehold: cannot run 'no-such-program': No such file or directory\n");
  const Finished forbidden = leasehold({"run", "x", "--", path("data")});
  EXPECT_EQ(forbidden.status, 126);
  EXPECT_THAT(forbidden.err, HasSubstr("Permission denied"));
  EXPECT_EQ(leasehold({"run", "x", "--", "true"}).status, 0) << "the lock was given back";
}

TEST_F(RunTest, IsSilentUnlessAsked) {
  const Finished quiet = leasehold({"run", "x", "--", "true"});
  EXPECT_EQ(quiet.out + quiet.err, "");
  const std::string time = "leasehold: 20..-..-..T..:..:..[.]...Z ";
  EXPECT_THAT(leasehold({"run", "x", "-v", "--", "true"}).err,
              ::testing::MatchesRegex(time + "took 'x' for 30.0s\n" + time + "gave 'x' back\n"));
}

TEST_F(RunTest, DoesNotSayThatItGaveBackWhatItKeeps) {
  EXPECT_THAT(leasehold({"run", "x", "-v", "--at-least", "10m", "--", "true"}).err,
              AllOf(HasSubstr("keeping 'x' for another 9m59s\n"), Not(HasSubstr("gave"))));
}

TEST_F(RunTest, KeepsTheCommandsOwnDashes) {
  const Finished done = leasehold({"run", "x", "--", "echo", "-v", "--ttl", "--", "--help"});
  EXPECT_EQ(done.out, "-v --ttl -- --help\n");
}

TEST_F(RunTest, TakesAnyNameAfterDashes) {
  for (const std::string name : {"x", "two words", "it's", "-dash", "--ttl", "--", "ü"}) {
    const Finished done = leasehold({"run", "--", name, "--", "sh", "-c", "echo $LEASEHOLD_LOCK"});
    EXPECT_EQ(done.out, name + "\n") << done.err;
  }
  EXPECT_EQ(leasehold({"run", "x", "--", "echo", "--", "y"}).out, "-- y\n");
}

TEST_F(RunTest, TakesANameThatBeginsWithADash) {
  const Finished done =
      leasehold({"run", "--ttl", "5s", "--", "-dash", "--", "sh", "-c", "echo $LEASEHOLD_LOCK"});
  EXPECT_EQ(done.out, "-dash\n") << done.err;
  EXPECT_EQ(leasehold({"run", "--", "--ttl", "--", "echo", "--", "-v"}).out, "-- -v\n");
  EXPECT_THAT(leasehold({"show", "--", "-dash"}).out, HasSubstr("  -dash\n"));
}

TEST_F(RunTest, ExportsLockStoreAndRequest) {
  const Finished done = leasehold({"run", "a/b c", "--", "env"});
  EXPECT_THAT(done.out, HasSubstr("LEASEHOLD_LOCK=a/b c\n"));
  EXPECT_THAT(done.out, HasSubstr("LEASEHOLD_STORE=sqlite:" + path("leasehold/locks.db") + "\n"));
  EXPECT_THAT(done.out, ::testing::ContainsRegex("LEASEHOLD_REQUEST=[0-9a-f]{32}\n"));
  EXPECT_THAT(done.out, Not(HasSubstr("LEASEHOLD_TOKEN")));
  EXPECT_THAT(done.out, Not(HasSubstr("LEASEHOLD_LINEAGE")));
}

TEST_F(RunTest, ExportsALargerTokenEachTimeWhenFenced) {
  const Finished first = leasehold({"run", "x", "--fenced", "--", "env"});
  EXPECT_THAT(first.out, HasSubstr("LEASEHOLD_TOKEN=1\n"));
  EXPECT_THAT(first.out, ::testing::ContainsRegex("LEASEHOLD_LINEAGE=[0-9a-f]{32}/x\n"));
  EXPECT_THAT(leasehold({"run", "x", "--fenced", "--", "env"}).out,
              HasSubstr("LEASEHOLD_TOKEN=2\n"));
}

TEST_F(RunTest, ATokenOfAnOuterRunDoesNotReachAnInnerOneWithoutToken) {
  const Finished done =
      leasehold({"run", "outer", "--fenced", "--", LEASEHOLD_PROGRAM, "run", "inner", "--", "env"});
  EXPECT_THAT(done.out, HasSubstr("LEASEHOLD_LOCK=inner"));
  EXPECT_THAT(done.out, Not(HasSubstr("LEASEHOLD_TOKEN")));
  EXPECT_THAT(done.out, Not(HasSubstr("LEASEHOLD_LINEAGE")));
}

TEST_F(RunTest, OnlyOneRuns) {
  Child holder = start_ready(run_shell({"x"}, "echo ready; read line"));
  const Finished second = leasehold({"run", "x", "--", "echo", "ran"});
  EXPECT_EQ(second.status, 75);
  EXPECT_EQ(second.out, "");
  EXPECT_THAT(second.err, AllOf(HasSubstr("leasehold: lock 'x' is not free: "), HasSubstr(":sh")));
  EXPECT_EQ(leasehold({"run", "other", "--", "true"}).status, 0);
  holder.in().reset();
  holder.wait();
  EXPECT_EQ(leasehold({"run", "x", "--", "true"}).status, 0);
}

TEST_F(RunTest, BusyStatusIsTheUsersChoice) {
  Child holder = start_ready(run_shell({"x"}, "echo ready; read line"));
  EXPECT_EQ(leasehold({"run", "x", "--busy-status", "5", "--", "true"}).status, 5);
  const Finished silent = leasehold({"run", "x", "--busy-status", "0", "--", "true"});
  EXPECT_EQ(silent.status, 0);
  EXPECT_EQ(silent.err, "");
  EXPECT_EQ(leasehold({"run", "x", "--wait", "50ms", "--busy-status", "6", "--", "true"}).status,
            6);
}

TEST_F(RunTest, WaitsAsLongAsAsked) {
  Child holder = start_ready(run_shell({"x"}, "echo ready; read line"));
  const Finished late = leasehold({"run", "x", "--wait", "100ms", "--", "true"});
  EXPECT_EQ(late.status, 75);
  EXPECT_THAT(late.err, HasSubstr("'x'"));
  Child waiter = start(run_shell({"x", "--wait", "1m"}, "echo mine"));
  holder.in().reset();
  EXPECT_EQ(read_all(waiter.out().get(), within(kPatience)), "mine\n");
  EXPECT_EQ(waiter.wait_for(kPatience), process::ExitStatus::exited(0));
}

TEST_F(RunTest, RenewsWhileTheCommandRuns) {
  Child holder = start_ready(run_shell({"x", "--ttl", "2s"}, "echo ready; read line; true"));
  EXPECT_EQ(leasehold({"run", "x", "--wait", "4s", "--", "true"}).status, 75)
      << "twice the ttl, and still held";
  holder.in().reset();
  EXPECT_EQ(holder.wait_for(kPatience), process::ExitStatus::exited(0)) << errors();
}

TEST_F(RunTest, StdinAndStdoutPassThrough) {
  const Finished done =
      finish({"sh", "-c", "cat | leasehold run x -- tr a-z A-Z | cat"}, "through\n");
  EXPECT_EQ(done.out, "THROUGH\n");
  EXPECT_EQ(done.status, 0);
}

TEST_F(RunTest, WorksWithoutStandardStreams) {
  EXPECT_EQ(shell("leasehold run x -- sh -c 'exit 4' <&- >&- 2>&-").status, 4);
  EXPECT_EQ(leasehold({"run", "x", "--", "true"}).status, 0) << "the store was not written over";
}

TEST_F(RunTest, AClosedStderrDoesNotEndTheWrapper) {
  process::Pipe pipe = process::make_pipe();
  process::Command what =
      command({LEASEHOLD_PROGRAM, "run", "x", "-v", "--", "sh", "-c", "exit 9"});
  what.err = process::FromFd{pipe.write.get()};
  pipe.read.reset();
  auto wrapper = Child::start(what);
  ASSERT_TRUE(wrapper);
  EXPECT_EQ(wrapper->wait_for(kPatience), process::ExitStatus::exited(9)) << "not SIGPIPE";
}

TEST_F(RunTest, LabelsTheHolder) {
  Child named = start_ready(run_shell({"x", "--owner", "the nightly job"}, "echo ready; read l"));
  EXPECT_THAT(leasehold({"run", "x", "--", "true"}).err, HasSubstr("the nightly job holds it"));
}

TEST_F(RunTest, DefaultStoreIsPrivateAndInTheStateFolder) {
  ASSERT_EQ(leasehold({"run", "x", "--", "true"}).status, 0);
  struct stat info {};
  ASSERT_EQ(stat(path("leasehold").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_TRUE(std::filesystem::exists(path("leasehold/locks.db")));
}

TEST_F(RunTest, StoreComesFromTheFlagThenTheEnvironmentThenTheDefault) {
  const std::string one = "sqlite:" + path("one.db");
  const std::string two = "sqlite:" + path("two.db");
  EXPECT_THAT(shell("LEASEHOLD_STORE=" + one + " leasehold run x --store " + two + " -- env").out,
              HasSubstr("LEASEHOLD_STORE=" + two));
  EXPECT_THAT(shell("LEASEHOLD_STORE=" + one + " leasehold run x -- env").out,
              HasSubstr("LEASEHOLD_STORE=" + one));
  const std::string at_home = "unset XDG_STATE_HOME; HOME=" + path("home") + " leasehold ";
  const Finished nowhere = shell(at_home + "run x -- env");
  EXPECT_EQ(nowhere.status, 64);
  EXPECT_THAT(nowhere.err, HasSubstr(path("home") + ", is not there; give a store with --store"));
  EXPECT_EQ(shell(at_home + "ls").status, 64);
  EXPECT_FALSE(std::filesystem::exists(path("home")));
  std::filesystem::create_directory(path("home"));
  const Finished home = shell(at_home + "run x -- env");
  EXPECT_THAT(home.out, HasSubstr(path("home/.local/state/leasehold/locks.db")));
  const Finished relative =
      shell("XDG_STATE_HOME=here HOME=" + path("home") + " leasehold run x -- env");
  EXPECT_THAT(relative.out, HasSubstr(path("home/.local/state/leasehold/locks.db")));
}

TEST_F(RunTest, StateFoldersWithOddNamesWork) {
  const Finished done =
      shell("XDG_STATE_HOME='" + path("a %20b?c=d") + "' leasehold run x -- true");
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_TRUE(std::filesystem::exists(path("a %20b?c=d/leasehold/locks.db")));
}

TEST_F(RunTest, AtLeastKeepsTheLockAfterAnEarlyEnd) {
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(leasehold({"run", "x", "--at-least", "10m", "--", "sh", "-c", "exit 3"}).status, 3);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 60s) << "the wrapper need not stay";
  const Finished second = leasehold({"run", "x", "--", "echo", "ran"});
  EXPECT_EQ(second.status, 75);
  EXPECT_EQ(second.out, "");
  EXPECT_THAT(leasehold({"ls"}).out, HasSubstr("kept"));
}

TEST_F(RunTest, AtLeastEndsByItself) {
  EXPECT_EQ(leasehold({"run", "x", "--at-least", "400ms", "--", "true"}).status, 0);
  EXPECT_EQ(leasehold({"run", "x", "--wait", "20s", "--", "true"}).status, 0);
}

TEST_F(RunTest, AtLeastIsNothingAfterALongerCommand) {
  EXPECT_EQ(leasehold({"run", "x", "--at-least", "10ms", "--", "sleep", "0.1"}).status, 0);
  EXPECT_EQ(leasehold({"run", "x", "--", "true"}).status, 0);
}

TEST_F(RunTest, OnceRunsOncePerKey) {
  const std::string script = "echo ran >> " + path("log");
  const auto once = [&](const std::string& lock, const std::string& key) {
    return leasehold({"run", lock, "--once", key, "--", "sh", "-c", script});
  };
  EXPECT_EQ(once("x", "monday").status, 0);
  const Finished again = once("x", "monday");
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(again.out + again.err, "");
  EXPECT_EQ(read("log"), "ran\n");
  EXPECT_EQ(once("x", "tuesday").status, 0);
  EXPECT_EQ(once("y", "monday").status, 0);
  EXPECT_EQ(read("log"), "ran\nran\nran\n") << "keys belong to their lock";
  EXPECT_THAT(leasehold({"run", "x", "-v", "--once", "monday", "--", "sh", "-c", script}).err,
              HasSubstr("was done before, with exit status 0"));
}

TEST_F(RunTest, OnceRunsAFailureAgain) {
  const std::string script = "echo ran >> " + path("log") + "; test -e " + path("healed");
  const Words once = run_shell({"run", "x", "--once", "monday"}, script);
  EXPECT_EQ(leasehold(once).status, 1);
  write("healed", "");
  EXPECT_EQ(leasehold(once).status, 0);
  EXPECT_EQ(leasehold(once).status, 0);
  EXPECT_EQ(read("log"), "ran\nran\n");
}

TEST_F(RunTest, OnceKeepsAFailureIfAsked) {
  const std::string script = "echo ran >> " + path("log") + "; exit 7";
  const auto once = [&](const Words& more) {
    Words words = {"run", "x", "--once", "monday"};
    words.insert(words.end(), more.begin(), more.end());
    return leasehold(run_shell(words, script));
  };
  EXPECT_EQ(once({"--once-keeps", "any"}).status, 7);
  for (const Words& more : {Words{"--once-keeps", "any"}, Words{}}) {
    const Finished again = once(more);
    EXPECT_EQ(again.status, 7);
    EXPECT_EQ(again.out, "");
    EXPECT_EQ(again.err,
              "leasehold: 'monday' was done before, with exit status 7, and was not run again; to "
              "run it again: leasehold once forget --store 'sqlite:" +
                  path("leasehold/locks.db") + "' 'x' 'monday'\n");
  }
  EXPECT_EQ(read("log"), "ran\n");
}

TEST_F(RunTest, OnceRefusesAKeyThatBelongsToAnotherCommand) {
  ASSERT_EQ(leasehold({"run", "x", "--once", "k", "--", "echo", "a b"}).status, 0);
  const Finished other = leasehold({"run", "x", "--once", "k", "--", "echo", "a", "b"});
  EXPECT_EQ(other.status, 64);
  EXPECT_EQ(other.out, "");
  EXPECT_THAT(other.err, HasSubstr("used with another command"));
  EXPECT_EQ(leasehold({"run", "x", "--", "true"}).status, 0) << "the lock was given back";
}

TEST_F(RunTest, OnceForgetsACommandThatASignalEnded) {
  const std::string script = "echo ran >> " + path("log") + "; kill -9 $$";
  EXPECT_EQ(leasehold({"run", "x", "--once", "k", "--", "sh", "-c", script}).status, 137);
  EXPECT_EQ(leasehold({"run", "x", "--once", "k", "--", "sh", "-c", script}).status, 137);
  EXPECT_EQ(read("log"), "ran\nran\n");
}

TEST_F(RunTest, OnceForgetsACommandThatDidNotStart) {
  EXPECT_EQ(leasehold({"run", "x", "--once", "k", "--", path("later")}).status, 127);
  write("later", "#!/bin/sh\nexit 6\n");
  std::filesystem::permissions(path("later"), std::filesystem::perms::owner_all);
  EXPECT_EQ(leasehold({"run", "x", "--once", "k", "--", path("later")}).status, 6);
}

}  // namespace
}  // namespace leasehold::cli
