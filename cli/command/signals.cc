#include "cli/command/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace leasehold::cli {
namespace {

// Passed on, or watched. SIGPIPE: a closed stderr must not end the wrapper and leave the command
// alone. SIGTTOU: blocked, the wrapper may set the terminal's foreground from the background.
constexpr int kWatched[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM, SIGUSR1, SIGUSR2, SIGALRM,
                            SIGCONT, SIGTSTP, SIGWINCH, SIGCHLD, SIGPIPE, SIGTTOU, SIGTTIN};

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kWatched) {
    // SIGCONT continues a program even if it is ignored.
    if (!is_ignored(number) || number == SIGCONT) sigaddset(&set, number);
  }
  return set;
}

}  // namespace

Signals::Signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, &child_before_);
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  fd_ = process::Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw std::system_error(errno, std::generic_category(), "signalfd");
}

Signals::~Signals() {
  take_end_request();  // what waits would strike when it is let through
  sigaction(SIGCHLD, &child_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::vector<int> Signals::ignored_before() const {
  if (child_before_.sa_handler != SIG_IGN) return {};
  return {SIGCHLD};
}

std::optional<int> Signals::next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

bool Signals::take_end_request() {
  bool asked = false;
  while (const auto number = next()) asked = asked || asks_to_end(*number);
  return asked;
}

bool Signals::asks_to_end(int number) {
  return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

SignalUnblocked::SignalUnblocked(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  pthread_sigmask(SIG_UNBLOCK, &set, &before_);
}

SignalUnblocked::~SignalUnblocked() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void stop_as_asked() {
  const SignalUnblocked now(SIGTSTP);
  raise(SIGTSTP);
}

}  // namespace leasehold::cli
