#include "leasehold/process/terminal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leasehold/process/child.h"

namespace leasehold::process {
namespace {

using namespace std::chrono_literals;

Child in_terminal(const Pty& pty, std::vector<std::string> argv) {
  auto child = Child::start({.argv = std::move(argv),
                             .in = FromFd{pty.slave.get()},
                             .out = FromFd{pty.slave.get()},
                             .err = FromFd{pty.slave.get()},
                             .placement = Placement::own_session,
                             .terminal = pty.slave.get()});
  EXPECT_TRUE(child);
  return std::move(*child);
}

TEST(Terminal, BecomesTheControllingTerminalOfANewSession) {
  const Pty pty = make_pty();
  Child child = in_terminal(pty, {"sh", "-c", "echo hello >/dev/tty; tty"});
  EXPECT_NE(read_until(pty.master.get(), "/dev/pts/", within(10s)).find("hello"),
            std::string::npos);
  EXPECT_TRUE(child.wait().success());
}

TEST(Terminal, CtrlCReachesTheForeground) {
  const Pty pty = make_pty();
  Child child = in_terminal(pty, {"sh", "-c", "trap 'exit 9' INT; echo up; sleep 60 & wait"});
  read_until(pty.master.get(), "up", within(10s));
  write_all(pty.master.get(), "\x03");
  EXPECT_EQ(child.wait_for(10s), ExitStatus::exited(9));
}

// What a job-control program does, in a session of its own; gives the number of the step that
// failed.
int hand_over_and_back(int slave) {
  if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) != 0) return 1;
  sigset_t ttou;
  sigemptyset(&ttou);
  sigaddset(&ttou, SIGTTOU);
  pthread_sigmask(SIG_BLOCK, &ttou, nullptr);
  auto terminal = Terminal::controlling();
  if (!terminal || !terminal->is_foreground()) return 2;
  // Without the hand-over it would be stopped by SIGTTIN when it reads.
  auto reader = Child::start({.argv = {"sh", "-c", "read x; echo read: $x"},
                              .in = FromFd{slave},
                              .out = FromFd{slave},
                              .placement = Placement::own_group,
                              .terminal = terminal->fd()});
  if (!reader || !terminal->is_foreground(reader->pid())) return 3;
  if (reader->wait_for(10s) != ExitStatus::exited(0)) return 4;
  terminal->take_back_from(reader->pid());
  return terminal->is_foreground() ? 0 : 5;
}

TEST(Terminal, HandsTheForegroundToAGroupAndTakesItBack) {
  const Pty pty = make_pty();
  const pid_t pid = fork();
  if (pid == 0) _exit(hand_over_and_back(pty.slave.get()));
  write_all(pty.master.get(), "typed\n");
  const std::string told = read_until(pty.master.get(), "read: typed", within(10s));
  EXPECT_NE(told.find("read: typed"), std::string::npos) << told;
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0) << "step " << status / 256;
}

}  // namespace
}  // namespace leasehold::process
