#include "kept_turns.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace leasehold::detail {
namespace {

// The clock that a thread sleeps by stands still while the machine is suspended.
constexpr BootClock::duration kOneSleep = std::chrono::seconds(1);
constexpr BootClock::duration kNothingToCome = std::chrono::hours(24);

}  // namespace

KeptTurns::~KeptTurns() {
  std::jthread thread;
  {
    MutexLock lock(mutex_);
    thread = std::move(thread_);
  }
}

Status KeptTurns::keep(Lease turn, Millis interval) {
  MutexLock lock(mutex_);
  try {
    if (!thread_.joinable()) {
      thread_ = std::jthread([this](const std::stop_token& stop) { give_back_in_time(stop); });
    }
  } catch (const std::system_error& error) {
    return fail(ErrorCode::unavailable, "this process cannot start a thread", error.what());
  }
  turns_.push_back({BootClock::now() + interval, std::move(turn)});
  changed_.notify_all();
  return {};
}

// A lease that is dropped is given back in the background.
void KeptTurns::give_back_in_time(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::deque<Turn> over;
    MutexLock lock(mutex_);
    const BootTime now = BootClock::now();
    while (!turns_.empty() && turns_.front().until <= now) {
      over.push_back(std::move(turns_.front()));
      turns_.pop_front();
    }
    if (!over.empty()) continue;
    const std::size_t seen = turns_.size();
    const auto next = seen == 0 ? kNothingToCome : std::min(turns_.front().until - now, kOneSleep);
    changed_.wait_for(mutex_, stop, next,
                      [&]() LEASEHOLD_REQUIRES(mutex_) { return turns_.size() != seen; });
  }
}

}  // namespace leasehold::detail
