#include "leasehold/process/io.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace leasehold::process {
namespace {

timespec time_left(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::max(deadline - std::chrono::steady_clock::now(),
                             std::chrono::steady_clock::duration::zero());
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  return {static_cast<time_t>(nanos / 1'000'000'000), static_cast<long>(nanos % 1'000'000'000)};
}

Fd above_standard(Fd fd) {
  if (fd.get() > STDERR_FILENO) return fd;
  return Fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

// Also true when the other side has gone.
bool wait_for_events(int fd, short events, Deadline deadline) {
  pollfd entry{fd, events, 0};
  for (;;) {
    timespec left{};
    if (deadline) left = time_left(*deadline);
    const int ready = ppoll(&entry, 1, deadline ? &left : nullptr, nullptr);
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// O_NONBLOCK would hold for everybody who shares the descriptor, so the file is opened once more.
// Empty if that fails: for want of permission, or with nobody at the other end.
Fd opened_again(int fd) {
  return Fd(open(("/proc/self/fd/" + std::to_string(fd)).c_str(),
                 O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  Fd read(ends[0]);
  Fd write(ends[1]);
  Pipe pipe{above_standard(std::move(read)), above_standard(std::move(write))};
  if (!pipe.read || !pipe.write) throw std::system_error(errno, std::generic_category(), "pipe");
  return pipe;
}

bool wait_readable(int fd, Deadline deadline) {
  return wait_for_events(fd, POLLIN, deadline);
}

std::string read_until(int fd, std::string_view text, Deadline deadline) {
  std::string seen;
  char buffer[4096];
  while (seen.find(text) == std::string::npos && wait_readable(fd, deadline)) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    seen.append(buffer, static_cast<std::size_t>(got));
  }
  return seen;
}

std::string read_all(int fd, Deadline deadline) {
  std::string seen;
  char buffer[4096];
  while (wait_readable(fd, deadline)) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    seen.append(buffer, static_cast<std::size_t>(got));
  }
  return seen;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

Written write_within(int fd, std::string_view text, Deadline deadline) {
  struct stat kind {};
  if (fstat(fd, &kind) != 0) return Written::failed;
  const bool socket = S_ISSOCK(kind.st_mode);
  if (!socket && !S_ISFIFO(kind.st_mode) && isatty(fd) != 1) {
    return write_all(fd, text) ? Written::all : Written::failed;
  }
  const Fd again = socket ? Fd() : opened_again(fd);
  while (!text.empty()) {
    // If it could not be opened once more, the best is to write only when there is room.
    if (!socket && !again && !wait_for_events(fd, POLLOUT, deadline)) return Written::not_in_time;
    const ssize_t put = socket ? send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                               : write(again ? again.get() : fd, text.data(), text.size());
    if (put >= 0) {
      text.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno == EAGAIN) {
      const bool late = deadline && std::chrono::steady_clock::now() >= *deadline;
      if (late || !wait_for_events(fd, POLLOUT, deadline)) return Written::not_in_time;
    } else if (errno != EINTR) {
      return Written::failed;
    }
  }
  return Written::all;
}

}  // namespace leasehold::process
