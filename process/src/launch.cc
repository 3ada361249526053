#include "launch.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "pidfd.h"

namespace leasehold::process {
namespace {

constexpr const char* kShell = "/bin/sh";

// All signals wait while it lives, so that no handler of the parent runs in the new child.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

bool sets(const std::string& entry, std::string_view name) {
  return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
}

Fd above_standard(int raw) {
  Fd fd(raw);
  if (raw < 0 || raw > STDERR_FILENO) return fd;
  return Fd(fcntl(raw, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

}  // namespace

int StartError::shell_status() const {
  return step == Step::execute && (error == ENOENT || error == ENOTDIR) ? 127 : 126;
}

Launch::Launch(const Command& command) : command_(command) {}

tl::expected<Child, StartError> Launch::go() {
  if (command_.argv.empty() || command_.argv.front().empty()) {
    return tl::unexpected(explain({StartError::Step::execute, ENOENT}));
  }
  if (const int error = prepare_streams(); error != 0) {
    return tl::unexpected(explain({StartError::Step::prepare, error}));
  }
  prepare_environment();
  prepare_candidates();
  Pipe report = make_pipe();

  Child child;
  {
    const SignalsBlocked quiet;
    const pid_t parent = getpid();
    // Not fork(): to copy the page tables of a large program takes longer than all the rest. What
    // the child does to memory before it is the command, nobody looks at afterwards.
    child.pid_ = vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
    if (child.pid_ == 0) become_command(parent, report.write.get());
  }
  if (child.pid_ < 0) return tl::unexpected(explain({StartError::Step::fork, errno}));
  // At once: if the parent ignores SIGCHLD, the kernel frees the pid when the child ends.
  child.pidfd_ = Fd(open_pidfd(child.pid_));
  const int no_pidfd = child.pidfd_ ? 0 : errno;
  report.write.reset();

  Failure failure{};
  ssize_t got = 0;
  do {
    got = read(report.read.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof failure) {
    child.wait();
    return tl::unexpected(explain(failure));
  }
  child.leads_group_ = command_.placement != Placement::same_group;
  if (no_pidfd != 0) return tl::unexpected(explain({StartError::Step::fork, no_pidfd}));
  child.in_ = std::move(streams_.mine[0]);
  child.out_ = std::move(streams_.mine[1]);
  child.err_ = std::move(streams_.mine[2]);
  return child;
}

int Launch::prepare_streams() {
  const Stream* wanted[] = {&command_.in, &command_.out, &command_.err};
  for (int target = 0; target < 3; ++target) {
    if (const int error = prepare_stream(*wanted[target], target); error != 0) return error;
  }
  return 0;
}

int Launch::prepare_stream(const Stream& stream, int target) {
  if (std::holds_alternative<Inherit>(stream)) return 0;
  Fd& theirs = streams_.theirs[target];
  if (std::holds_alternative<Piped>(stream)) {
    Pipe pipe = make_pipe();
    theirs = std::move(target == STDIN_FILENO ? pipe.read : pipe.write);
    streams_.mine[target] = std::move(target == STDIN_FILENO ? pipe.write : pipe.read);
    return 0;
  }
  if (const auto* borrowed = std::get_if<FromFd>(&stream)) {
    theirs = Fd(fcntl(borrowed->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    return theirs ? 0 : errno;
  }
  const auto* file = std::get_if<ToFile>(&stream);
  const int writing = O_WRONLY | O_CREAT | (file && file->append ? O_APPEND : O_TRUNC);
  const int flags = (target == STDIN_FILENO ? O_RDONLY : file ? writing : O_WRONLY) | O_CLOEXEC;
  theirs = above_standard(open(file ? file->path.c_str() : "/dev/null", flags, 0666));
  return theirs ? 0 : errno;
}

void Launch::prepare_environment() {
  for (char** entry = environ; entry && *entry; ++entry) environment_.emplace_back(*entry);
  for (const auto& addition : command_.environment) {
    const std::string& name = addition.first;
    std::erase_if(environment_, [&](const std::string& entry) { return sets(entry, name); });
    if (addition.second) environment_.push_back(name + "=" + *addition.second);
  }
  for (std::string& entry : environment_) envp_.push_back(entry.data());
  envp_.push_back(nullptr);
}

std::string Launch::variable(std::string_view name) const {
  for (const std::string& entry : environment_) {
    if (sets(entry, name)) return entry.substr(name.size() + 1);
  }
  return {};
}

void Launch::prepare_candidates() {
  argv_.push_back(nullptr);
  for (const std::string& argument : command_.argv) {
    argv_.push_back(const_cast<char*>(argument.c_str()));
  }
  argv_.push_back(nullptr);

  const std::string& program = command_.argv.front();
  if (program.find('/') != std::string::npos) {
    candidates_.push_back(program);
    return;
  }
  std::string path = variable("PATH");
  if (path.empty()) path = "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t to = std::min(path.find(':', from), path.size());
    const std::string folder = path.substr(from, to - from);
    candidates_.push_back(folder.empty() ? program : folder + "/" + program);
    from = to + 1;
  }
}

void Launch::become_command(pid_t parent, int report) {
  Failure failure{StartError::Step::place, place(parent)};
  if (failure.error == 0) failure = {StartError::Step::streams, wire_streams()};
  if (failure.error == 0) {
    set_dispositions();
    sigset_t mask;
    sigemptyset(&mask);
    sigprocmask(SIG_SETMASK, command_.signal_mask ? &*command_.signal_mask : &mask, nullptr);
    failure = {StartError::Step::execute, execute()};
  }
  // Shorter than PIPE_BUF, so it arrives whole; if the parent has gone there is nobody to tell.
  [[maybe_unused]] const ssize_t told = write(report, &failure, sizeof failure);
  _exit(127);
}

int Launch::place(pid_t parent) const {
  if (command_.parent_death_signal) {
    if (prctl(PR_SET_PDEATHSIG, *command_.parent_death_signal) != 0) return errno;
    if (getppid() != parent) _exit(127);  // the parent died before this took effect
  }
  if (command_.placement == Placement::own_session) {
    if (setsid() < 0) return errno;
    if (command_.terminal && ioctl(*command_.terminal, TIOCSCTTY, 0) != 0) return errno;
  }
  if (command_.placement == Placement::own_group) {
    if (setpgid(0, 0) != 0) return errno;
    // Everything is blocked, SIGTTOU too: the background may take the foreground. If the terminal
    // hung up meanwhile the command finds out by itself.
    if (command_.terminal) tcsetpgrp(*command_.terminal, getpid());
  }
  return 0;
}

int Launch::wire_streams() const {
  for (int target = 0; target < 3; ++target) {
    const int source = streams_.theirs[target].get();
    if (source >= 0 && dup2(source, target) < 0) return errno;
  }
  return 0;
}

void Launch::set_dispositions() const {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    if (action.sa_handler == SIG_DFL) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    sigaction(number, &action, nullptr);
  }
  for (const int number : command_.ignored_signals) {
    struct sigaction action {};
    action.sa_handler = SIG_IGN;
    sigaction(number, &action, nullptr);
  }
}

// As execvp(3), which is not async-signal-safe.
int Launch::execute() {
  int error = ENOENT;
  for (std::string& candidate : candidates_) {
    execve(candidate.c_str(), argv_.data() + 1, envp_.data());
    if (errno == ENOEXEC) {
      argv_[0] = const_cast<char*>(kShell);
      argv_[1] = candidate.data();
      execve(kShell, argv_.data(), envp_.data());
      return errno;
    }
    if (errno == EACCES) error = EACCES;  // perhaps a later folder has one that may be run
    if (errno != EACCES && errno != ENOENT && errno != ENOTDIR) return errno;
  }
  return error;
}

StartError Launch::explain(Failure failure) const {
  const std::string program = command_.argv.empty() ? std::string() : command_.argv.front();
  return {failure.step, failure.error,
          "cannot run '" + program + "': " + std::generic_category().message(failure.error)};
}

}  // namespace leasehold::process
