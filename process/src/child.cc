#include "leasehold/process/child.h"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>

#include "launch.h"
#include "pidfd.h"

namespace leasehold::process {
namespace {

ExitStatus status_of(const siginfo_t& info) {
  return info.si_code == CLD_EXITED ? ExitStatus::exited(info.si_status)
                                    : ExitStatus::signalled(info.si_status);
}

}  // namespace

tl::expected<Child, StartError> Child::start(const Command& command) {
  return Launch(command).go();
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      leads_group_(other.leads_group_),
      pidfd_(std::move(other.pidfd_)),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      status_(other.status_) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  finish();
  pid_ = std::exchange(other.pid_, -1);
  leads_group_ = other.leads_group_;
  pidfd_ = std::move(other.pidfd_);
  in_ = std::move(other.in_);
  out_ = std::move(other.out_);
  err_ = std::move(other.err_);
  status_ = other.status_;
  return *this;
}

Child::~Child() {
  finish();
}

void Child::finish() noexcept {
  if (pid_ < 0 || status_) return;
  signal_group(SIGKILL);
  wait();
}

ExitStatus Child::wait() {
  siginfo_t info{};
  while (!status_) {
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) == 0) status_ = status_of(info);
    if (!status_ && errno != EINTR) status_ = ExitStatus::unknown();  // somebody else reaped it
  }
  return *status_;
}

std::optional<ExitStatus> Child::wait(Deadline deadline) {
  if (!status_ && !wait_readable(pidfd_.get(), deadline)) return std::nullopt;
  return wait();
}

std::optional<ExitStatus> Child::poll() {
  siginfo_t info{};
  if (status_) return status_;
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) == 0) {
    if (info.si_pid != 0) status_ = status_of(info);
  } else if (errno == ECHILD) {
    status_ = ExitStatus::unknown();
  }
  return status_;
}

std::optional<int> Child::take_stop() {
  siginfo_t info{};
  if (status_) return std::nullopt;
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG) != 0) return std::nullopt;
  if (info.si_pid == 0) return std::nullopt;
  return info.si_status;
}

bool Child::take_continue() {
  siginfo_t info{};
  if (status_) return false;
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WCONTINUED | WNOHANG) == 0 &&
         info.si_pid != 0;
}

bool Child::signal(int number) {
  if (status_) return false;
  return signal_pidfd(pidfd_.get(), number) == 0;
}

bool Child::signal_group(int number) {
  if (!leads_group_) return signal(number);
  return kill(-pid_, number) == 0;
}

void Child::freeze() {
  if (!signal_group(SIGSTOP)) return;
  siginfo_t info{};
  const auto wait = [&] {
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT);
  };
  while (wait() != 0 && errno == EINTR) {
  }
}

}  // namespace leasehold::process
