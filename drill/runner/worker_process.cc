#include "worker_process.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

namespace leasehold::drill {

Result<WorkerProcess> WorkerProcess::start(std::string name, std::vector<std::string> argv,
                                           Environment environment, const std::string& errors) {
  // A group of its own: Ctrl-C is for the drill, which then ends the workers.
  auto child = process::Child::start({.argv = std::move(argv),
                                      .environment = std::move(environment),
                                      .in = process::Piped{},
                                      .out = process::Piped{},
                                      .err = process::ToFile{errors, true},
                                      .placement = process::Placement::own_group,
                                      .parent_death_signal = SIGKILL});
  if (!child) return fail(ErrorCode::unavailable, child.error().message);
  return WorkerProcess(std::move(name), std::move(*child));
}

std::vector<std::string> WorkerProcess::lines() {
  pollfd event{fd(), POLLIN, 0};
  while (!ended_ && poll(&event, 1, 0) > 0) {
    char buffer[1024];
    const ssize_t got = read(fd(), buffer, sizeof buffer);
    if (got <= 0) {
      ended_ = true;
    } else {
      unread_.append(buffer, static_cast<std::size_t>(got));
    }
  }
  std::vector<std::string> lines;
  for (std::size_t end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
    lines.push_back(unread_.substr(0, end));
    unread_.erase(0, end + 1);
  }
  return lines;
}

void WorkerProcess::go() {
  process::write_all(child_.in().get(), "go\n");
}

void WorkerProcess::freeze() {
  child_.signal(SIGSTOP);
}

bool WorkerProcess::was_frozen() {
  return child_.take_stop() == SIGSTOP;
}

void WorkerProcess::thaw() {
  child_.signal(SIGCONT);
}

void WorkerProcess::kill() {
  child_.signal(SIGKILL);
  child_.wait();
}

}  // namespace leasehold::drill
