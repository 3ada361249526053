#include "commit_watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace leasehold::sqlite {
namespace {

using namespace std::chrono_literals;

// One commit is several writes.
constexpr Millis kGather = 5ms;

}  // namespace

void CommitWatcher::watch(const LockName& lock) {
  {
    MutexLock guard(mutex_);
    if (stopped_) return;
    if (!thread_.joinable()) {
      if (!open()) return;  // whoever watches looks without being told
      try {
        thread_ = std::thread([this] { listen(); });
      } catch (const std::system_error&) {
        return;
      }
    }
  }
  events_().changed(lock);
}

// The next commit is told whatever is watched.
void CommitWatcher::unwatch(const LockName&) {}

void CommitWatcher::stop() {
  std::thread ending;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    ending.swap(thread_);
  }
  const std::uint64_t one = 1;
  if (ending_) (void)!write(ending_.get(), &one, sizeof one);
  if (ending.joinable()) ending.join();
}

// The folder, because the WAL itself comes and goes with those who use the file.
bool CommitWatcher::open() {
  files_ = kit::Fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ending_ = kit::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!files_ || !ending_) return false;
  const std::string folder = std::filesystem::path(database_).parent_path().string();
  return inotify_add_watch(files_.get(), folder.empty() ? "." : folder.c_str(),
                           IN_MODIFY | IN_ONLYDIR | IN_DELETE_SELF | IN_MOVE_SELF) >= 0;
}

// False if it ends.
bool CommitWatcher::rest(Millis time) const {
  pollfd ending{ending_.get(), POLLIN, 0};
  return poll(&ending, 1, static_cast<int>(time.count())) <= 0;
}

bool CommitWatcher::read_commits(bool& gone) const {
  const std::string wal = std::filesystem::path(database_).filename().string() + "-wal";
  bool committed = false;
  alignas(inotify_event) std::array<char, 16384> bytes;
  for (;;) {
    const ssize_t length = read(files_.get(), bytes.data(), bytes.size());
    if (length <= 0) return committed;
    for (const char* at = bytes.data(); at < bytes.data() + length;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      const bool is_wal = event->len > 0 && std::string_view(event->name) == wal;
      committed = committed || is_wal || (event->mask & IN_Q_OVERFLOW) != 0;
      gone = gone || (event->mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF)) != 0;
      at += sizeof(inotify_event) + event->len;
    }
  }
}

void CommitWatcher::listen() {
  events_().tells_changes();
  std::array<pollfd, 2> polled = {{{files_.get(), POLLIN, 0}, {ending_.get(), POLLIN, 0}}};
  for (;;) {
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    if (polled[1].revents != 0) return;
    bool gone = false;
    if (read_commits(gone)) events_().any_changed();
    if (gone) {
      return events_().tells_no_changes(
          Error(ErrorCode::unavailable, "the folder of the file was moved or deleted"));
    }
    if (!rest(kGather)) return;
  }
}

}  // namespace leasehold::sqlite
