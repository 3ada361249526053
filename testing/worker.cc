#include "testing/worker.h"

#include <signal.h>

#include <stdexcept>

namespace leasehold::testing {
namespace {

process::Child started(std::vector<std::string> argv) {
  process::Command command;
  command.argv = std::move(argv);
  command.in = process::Piped{};
  command.out = process::Piped{};
  command.parent_death_signal = SIGKILL;
  auto child = process::Child::start(command);
  if (!child) throw std::runtime_error(child.error().message);
  return std::move(*child);
}

}  // namespace

Worker::Worker(std::vector<std::string> argv) : child_(started(std::move(argv))) {}

Worker Worker::hold(const std::string& url, const std::string& lock, Millis ttl, Millis wait,
                    std::vector<std::string> under) {
  for (const std::string& word :
       {std::string(LEASEHOLD_LOCK_WORKER), url, std::string("hold"), lock,
        std::to_string(ttl.count()), std::to_string(wait.count())}) {
    under.push_back(word);
  }
  return Worker(std::move(under));
}

Worker Worker::hold(const std::string& url, const std::string& lock, Millis ttl, Millis wait,
                    Mode mode) {
  return Worker({LEASEHOLD_LOCK_WORKER, url, "hold", lock, std::to_string(ttl.count()),
                 std::to_string(wait.count()), std::to_string(mode.code())});
}

Worker Worker::count(const std::string& url, const std::string& lock, const std::string& file,
                     int times) {
  return Worker({LEASEHOLD_LOCK_WORKER, url, "count", lock, file, std::to_string(times)});
}

std::string Worker::line() {
  constexpr auto patience = std::chrono::seconds(60);
  while (unread_.find('\n') == std::string::npos) {
    const std::string more =
        process::read_until(child_.out().get(), "\n", process::within(patience));
    if (more.empty()) return "";
    unread_ += more;
  }
  const std::size_t end = unread_.find('\n');
  std::string first = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return first;
}

void Worker::tell(std::string_view order) {
  process::write_all(child_.in().get(), std::string(order) + "\n");
}

void Worker::freeze() {
  child_.freeze();
}

void Worker::thaw() {
  child_.signal(SIGCONT);
}

void Worker::kill() {
  child_.signal(SIGKILL);
  child_.wait();
}

int Worker::wait() {
  child_.in().reset();
  return child_.wait().shell_status();
}

}  // namespace leasehold::testing
