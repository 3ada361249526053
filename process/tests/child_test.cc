#include "leasehold/process/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace leasehold::process {
namespace {

using namespace std::chrono_literals;

Command shell(const std::string& script) {
  return {.argv = {"/bin/sh", "-c", script}, .out = Piped{}};
}

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/leasehold-process-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& file) const { return path_ + "/" + file; }
  const std::string& str() const { return path_; }

 private:
  std::string path_;
};

void write_file(const std::string& path, const std::string& text, mode_t mode) {
  std::ofstream(path) << text;
  chmod(path.c_str(), mode);
}

TEST(Child, ReportsTheExitCode) {
  auto child = Child::start(shell("exit 7"));
  ASSERT_TRUE(child);
  EXPECT_EQ(child->wait(), ExitStatus::exited(7));
  EXPECT_EQ(child->wait(), ExitStatus::exited(7)) << "asking again gives the same answer";
  EXPECT_FALSE(child->signal(SIGTERM)) << "a reaped child cannot be signalled";
}

TEST(Child, ReportsTheSignal) {
  auto child = Child::start(shell("kill -9 $$"));
  ASSERT_TRUE(child);
  EXPECT_EQ(child->wait(), ExitStatus::signalled(SIGKILL));
}

TEST(Child, FindsProgramsInThePathOfTheChild) {
  Folder folder;
  write_file(folder / "only-here", "#!/bin/sh\nexit 5\n", 0755);
  auto child = Child::start({.argv = {"only-here"}, .environment = {{"PATH", folder.str()}}});
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_EQ(child->wait(), ExitStatus::exited(5));
}

TEST(Child, RunsAScriptWithoutAnInterpreterLineAsAShellWould) {
  Folder folder;
  write_file(folder / "bare", "exit $1\n", 0755);
  auto child = Child::start({.argv = {folder / "bare", "6"}});
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_EQ(child->wait(), ExitStatus::exited(6));
}

TEST(Child, TellsNotFoundFromNotExecutable) {
  Folder folder;
  write_file(folder / "data", "no program\n", 0644);
  const auto missing = Child::start({.argv = {folder / "missing"}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().shell_status(), 127);
  EXPECT_NE(missing.error().message.find("No such file"), std::string::npos);

  const auto unknown = Child::start({.argv = {"no-such-program-anywhere"}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().shell_status(), 127);

  const auto forbidden = Child::start({.argv = {folder / "data"}});
  ASSERT_FALSE(forbidden);
  EXPECT_EQ(forbidden.error().shell_status(), 126);

  const auto directory = Child::start({.argv = {folder.str()}});
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().shell_status(), 126);

  const auto nothing = Child::start({.argv = {}});
  ASSERT_FALSE(nothing);
}

TEST(Child, LeavesNoZombieWhenItDidNotStart) {
  ASSERT_FALSE(Child::start({.argv = {"/nonexistent"}}));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Child, AddsAndRemovesEnvironment) {
  setenv("LEASEHOLD_TEST_OLD", "1", 1);
  Command command = shell("echo \"${LEASEHOLD_TEST_OLD-gone} $LEASEHOLD_TEST_NEW\"");
  command.environment = {{"LEASEHOLD_TEST_OLD", std::nullopt}, {"LEASEHOLD_TEST_NEW", "a b=c"}};
  auto child = Child::start(command);
  ASSERT_TRUE(child);
  EXPECT_EQ(read_all(child->out().get()), "gone a b=c\n");
}

TEST(Child, ConnectsPipesAndFiles) {
  Folder folder;
  Command command = shell("cat; echo error >&2");
  command.in = Piped{};
  command.err = ToFile{folder / "err"};
  auto child = Child::start(command);
  ASSERT_TRUE(child);
  ASSERT_TRUE(write_all(child->in().get(), "through\n"));
  child->in().reset();
  EXPECT_EQ(read_all(child->out().get(), within(10s)), "through\n");
  EXPECT_EQ(child->wait(), ExitStatus::exited(0));
  std::ifstream errors(folder / "err");
  std::string line;
  std::getline(errors, line);
  EXPECT_EQ(line, "error");
}

TEST(Child, GivesEveryStreamItsOwnEndEvenIfTheParentHasNoneOpen) {
  // In a process of its own, whose standard descriptors are closed: pipes then get low numbers.
  const pid_t pid = fork();
  if (pid == 0) {
    close(0);
    close(1);
    close(2);
    Command command = shell("read x; echo out-$x; echo err-$x >&2");
    command.in = Piped{};
    command.err = Piped{};
    auto child = Child::start(command);
    if (!child || !write_all(child->in().get(), "1\n")) _exit(1);
    if (read_all(child->out().get()) != "out-1\n") _exit(2);
    if (read_all(child->err().get()) != "err-1\n") _exit(3);
    _exit(child->wait().success() ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST(Child, WaitsNoLongerThanAsked) {
  auto child = Child::start({.argv = {"sleep", "60"}});
  ASSERT_TRUE(child);
  EXPECT_FALSE(child->poll());
  EXPECT_FALSE(child->wait_for(20ms));
  EXPECT_TRUE(child->signal(SIGTERM));
  EXPECT_EQ(child->wait_for(10s), ExitStatus::signalled(SIGTERM));
  EXPECT_EQ(child->poll(), ExitStatus::signalled(SIGTERM));
}

TEST(Child, DestructorKillsTheWholeGroup) {
  Pipe alive = make_pipe();
  {
    Command command = shell("sleep 60 & echo ready; wait");
    command.placement = Placement::own_group;
    command.err = FromFd{alive.write.get()};  // open as long as any of them lives
    auto child = Child::start(command);
    ASSERT_TRUE(child);
    ASSERT_EQ(read_until(child->out().get(), "ready\n", within(10s)), "ready\n");
  }
  alive.write.reset();
  EXPECT_TRUE(wait_readable(alive.read.get(), within(10s))) << "a grandchild survived";
}

TEST(Child, MovesWithoutEndingTheProcess) {
  auto first = Child::start({.argv = {"sleep", "60"}});
  ASSERT_TRUE(first);
  Child second = std::move(*first);
  EXPECT_FALSE(second.poll());
  auto third = Child::start(shell("exit 0"));
  ASSERT_TRUE(third);
  second = std::move(*third);  // ends the sleep
  EXPECT_EQ(second.wait(), ExitStatus::exited(0));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "everybody was reaped";
}

TEST(Child, SignalsTheWholeGroup) {
  Command command = shell("sleep 60 & sleep 60 & echo ready; wait");
  command.placement = Placement::own_group;
  auto child = Child::start(command);
  ASSERT_TRUE(child);
  ASSERT_EQ(read_until(child->out().get(), "ready\n", within(10s)), "ready\n");
  EXPECT_TRUE(child->signal_group(SIGTERM));
  EXPECT_EQ(child->wait_for(10s), ExitStatus::signalled(SIGTERM));
  EXPECT_TRUE(wait_readable(child->out().get(), within(10s))) << "a grandchild survived";
}

TEST(Child, SeesAStop) {
  auto child = Child::start({.argv = {"sleep", "60"}});
  ASSERT_TRUE(child);
  EXPECT_FALSE(child->take_stop());
  child->freeze();
  EXPECT_EQ(child->take_stop(), SIGSTOP);
  EXPECT_FALSE(child->take_stop()) << "each stop is told once";
  EXPECT_FALSE(child->take_continue());
  child->signal(SIGCONT);
  while (!child->take_continue()) std::this_thread::yield();
  EXPECT_FALSE(child->take_continue()) << "so is each continuation";
}

std::string mask_line(Child& child, const std::string& field) {
  const std::string text = read_all(child.out().get(), within(10s));
  const std::size_t at = text.find(field);
  return text.substr(at + field.size(), text.find('\n', at) - at - field.size());
}

TEST(Child, StartsWithNothingBlockedAndNoHandler) {
  sigset_t set;
  sigset_t before;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  auto plain = Child::start({.argv = {"cat", "/proc/self/status"}, .out = Piped{}});
  auto masked =
      Child::start({.argv = {"cat", "/proc/self/status"}, .out = Piped{}, .signal_mask = set});
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(plain);
  ASSERT_TRUE(masked);
  EXPECT_EQ(mask_line(*plain, "SigBlk:\t"), "0000000000000000");
  EXPECT_EQ(mask_line(*masked, "SigBlk:\t"), "0000000000000200");
}

TEST(Child, IgnoresForTheCommandWhatItShould) {
  auto child = Child::start({.argv = {"/bin/sh", "-c", "kill -USR1 $$; echo survived"},
                             .out = Piped{},
                             .ignored_signals = {SIGUSR1}});
  ASSERT_TRUE(child);
  EXPECT_EQ(read_all(child->out().get(), within(10s)), "survived\n");
}

TEST(Child, DoesNotGuessAStatusThatSomebodyElseWasTold) {
  for (const bool by_poll : {false, true}) {
    auto child = Child::start(shell("exit 0"));
    ASSERT_TRUE(child);
    ASSERT_EQ(waitpid(child->pid(), nullptr, 0), child->pid());
    const auto status = by_poll ? child->poll() : child->wait();
    ASSERT_TRUE(status);
    EXPECT_FALSE(status->known());
    EXPECT_FALSE(status->success());
    EXPECT_EQ(child->wait(), ExitStatus::unknown());
  }
}

TEST(Child, KeepsWhatNohupIgnores) {
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGHUP, &ignore, &before);
  auto child = Child::start(shell("kill -HUP $$; echo survived"));
  sigaction(SIGHUP, &before, nullptr);
  ASSERT_TRUE(child);
  EXPECT_EQ(read_all(child->out().get(), within(10s)), "survived\n");
}

TEST(Child, DiesWithTheThreadThatStartedIt) {
  std::optional<Child> child;
  std::thread([&] {
    auto started = Child::start({.argv = {"sleep", "60"}, .parent_death_signal = SIGKILL});
    ASSERT_TRUE(started);
    child = std::move(*started);
  }).join();
  ASSERT_TRUE(child);
  EXPECT_EQ(child->wait_for(10s), ExitStatus::signalled(SIGKILL));
}

TEST(Child, LeaksNoDescriptor) {
  const Pipe pipe = make_pipe();
  const std::string mine =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(pipe.read.get()));
  auto child = Child::start(shell("ls -l /proc/self/fd"));
  ASSERT_TRUE(child);
  EXPECT_EQ(read_all(child->out().get(), within(10s)).find(mine), std::string::npos);
}

}  // namespace
}  // namespace leasehold::process
