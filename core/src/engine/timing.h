// All the times that the engine derives from a TTL, in one place.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "leasehold/random.h"
#include "leasehold/time.h"
#include "leasehold/ttl.h"

namespace leasehold::engine {

using Duration = BootClock::duration;

// Between 90 and 100 percent of `length`, so that many clients do not act in step.
inline Duration jittered(Duration length, Random& random) {
  const auto percent = static_cast<Duration::rep>(90 + random.next() % 11);
  return length / 100 * percent;
}

// How much earlier than the store this process ends a lease: clocks may differ by 1000 ppm, and a
// timer may fire late.
inline Duration drift_allowance(Duration ttl) {
  return ttl / 1000 + Millis(2);
}

inline Duration renewal_interval(Duration ttl) {
  return ttl / 3;
}

// A renewal may be sent this much early, to share a batch with one that is due.
inline Duration renewal_slack(Duration ttl) {
  return ttl / 64;
}

// Renewals of one lane share a few threads, those of different lanes none. The longest TTL of a
// lane is less than four times the shortest, so that waiting for each other costs a short lease
// little.
inline constexpr std::size_t kRenewalLanes = 10;
inline std::size_t renewal_lane(Millis ttl) {
  const auto times = static_cast<std::uint64_t>(ttl / Ttl::kMin);
  return (static_cast<std::size_t>(std::bit_width(times)) - 1) / 2;
}

// By when the store is to answer a call whose caller is told at `limit`: earlier, so that what the
// store says of it is what the caller is told.
inline BootTime answer_wanted_by(BootTime now, BootTime limit) {
  return limit - std::clamp<Duration>((limit - now) / 20, Millis(0), Millis(50));
}

// Grows from `first` by doubling up to `most`.
inline Duration backoff(int failures, Duration first, Duration most, Random& random) {
  const int doublings = std::min(failures, 16);
  return jittered(std::min(first * (1 << doublings), most), random);
}

inline Duration renewal_retry(int failures, Duration ttl, Random& random) {
  return backoff(failures, std::min<Duration>(ttl / 30, Millis(200)), ttl / 6, random);
}

inline Duration store_retry(int failures, Random& random) {
  return backoff(failures, Millis(10), std::chrono::seconds(1), random);
}

// Polling a busy lock where the store has no queue. Anywhere up to the backoff: clients that lost
// the same vote would lose the next one together.
inline Duration busy_poll(int polls, Random& random) {
  const Duration most = backoff(polls, Millis(5), Millis(250), random);
  return std::max<Duration>(Millis(1),
                            most / 1000 * static_cast<Duration::rep>(random.next() % 1001));
}

}  // namespace leasehold::engine
