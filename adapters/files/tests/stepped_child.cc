#include "stepped_child.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

namespace leasehold::files {
namespace {

constexpr int kCallStop = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, __WALL) < 0) {
    if (errno != EINTR) throw std::runtime_error("the child cannot be waited for");
  }
  return status;
}

}  // namespace

SteppedChild::SteppedChild(const std::function<int()>& body) : pid_(fork()) {
  if (pid_ < 0) throw std::runtime_error("no child");
  if (pid_ == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(120);
    raise(SIGSTOP);
    _exit(body());
  }
  status_ = wait_for(pid_);
  if (!WIFSTOPPED(status_)) throw std::runtime_error("this system does not let a child be traced");
  if (ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) != 0) {
    throw std::runtime_error("the child cannot be stopped at its system calls");
  }
}

SteppedChild::~SteppedChild() {
  kill();
}

bool SteppedChild::resume(int request) {
  if (ended_) return false;
  const bool by_signal = WIFSTOPPED(status_) && WSTOPSIG(status_) != kCallStop &&
                         WSTOPSIG(status_) != SIGSTOP && WSTOPSIG(status_) != SIGTRAP;
  const long signal = by_signal ? WSTOPSIG(status_) : 0;
  if (ptrace(static_cast<__ptrace_request>(request), pid_, nullptr, signal) != 0) {
    throw std::runtime_error("the child cannot be continued");
  }
  status_ = wait_for(pid_);
  ended_ = WIFEXITED(status_) || WIFSIGNALED(status_);
  return !ended_;
}

bool SteppedChild::step() {
  for (int halves = 0; halves < 2;) {  // a call stops at its beginning and at its end
    if (!resume(PTRACE_SYSCALL)) return false;
    halves += WSTOPSIG(status_) == kCallStop;
  }
  return true;
}

bool SteppedChild::step(int count) {
  for (int i = 0; i < count; ++i) {
    if (!step()) return false;
  }
  return true;
}

std::optional<int> SteppedChild::finish() {
  while (resume(PTRACE_CONT)) {
  }
  if (!WIFEXITED(status_)) return std::nullopt;
  return WEXITSTATUS(status_);
}

void SteppedChild::kill() {
  if (ended_) return;
  ::kill(pid_, SIGKILL);
  while (!ended_) {
    status_ = wait_for(pid_);
    ended_ = WIFEXITED(status_) || WIFSIGNALED(status_);
  }
}

}  // namespace leasehold::files
