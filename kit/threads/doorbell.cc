#include "kit/threads/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace leasehold::kit {
namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

constexpr auto kLongestSleep = std::chrono::hours(1);

timespec span(BootClock::duration length) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(length);
  return {seconds.count(), (length - seconds).count()};
}

// Not with FUTEX_PRIVATE_FLAG, as every mutex has it. Since Linux 6.16 the private ones of a
// process share a small table, of 16 lists on two cores: waking anybody would go through a
// sixteenth of all sleepers. The others are in a table for the whole machine.
void futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value,
           const timespec* limit = nullptr) {
  syscall(SYS_futex, word, operation, value, limit, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>* word) {
  futex(word, FUTEX_WAKE, std::numeric_limits<int>::max());
}

// While the word has this value. False if it is `when` already.
bool sleep(std::atomic<std::uint32_t>* word, std::uint32_t value, BootTime when) {
  const BootTime now = BootClock::now();
  if (now >= when) return false;
  const timespec limit = span(std::min<BootClock::duration>(when - now, kLongestSleep));
  futex(word, FUTEX_WAIT, value, &limit);
  return true;
}

}  // namespace

void Doorbell::ring() {
  std::atomic<std::uint32_t>* const word = &state_;
  // The kernel may be given the address of what is gone: then nobody sleeps there, or wakes for
  // nothing.
  if (state_.exchange(kRung) == kSomebodySleeps) wake_all(word);
}

bool Doorbell::wait_until(BootTime when) {
  std::uint32_t silent = kSilent;
  state_.compare_exchange_strong(silent, kSomebodySleeps);
  while (state_ != kRung) {
    if (!sleep(&state_, kSomebodySleeps, when)) return false;
  }
  return true;
}

void Gong::strike() {
  ++strokes_;
  wake_all(&strokes_);
}

void Gong::await_stroke_after(Strokes seen, BootTime when) {
  sleep(&strokes_, seen, when);
}

}  // namespace leasehold::kit
