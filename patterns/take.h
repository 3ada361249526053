// Taking a lease with or without a token, for patterns that have both.
#pragma once

#include <algorithm>
#include <chrono>
#include <type_traits>
#include <utility>

#include "leasehold/client.h"

namespace leasehold::detail {

template <class HeldLease>
Result<HeldLease> take(Client& client, const LockName& lock, AcquireOptions options) {
  if constexpr (std::is_same_v<HeldLease, FencedLease>) {
    return client.acquire_fenced(lock, std::move(options));
  } else {
    return client.acquire(lock, std::move(options));
  }
}

// The same, where the wait has begun before, and ends at `until`.
template <class HeldLease>
Result<HeldLease> take_until(BootTime until, Client& client, const LockName& lock,
                             AcquireOptions options) {
  if (options.wait <= Millis(0)) return take<HeldLease>(client, lock, std::move(options));
  options.wait = std::max(Millis(0), std::chrono::ceil<Millis>(until - BootClock::now()));
  auto lease = take<HeldLease>(client, lock, std::move(options));
  if (!lease && lease.error().code == ErrorCode::busy) lease.error().code = ErrorCode::timeout;
  return lease;
}

}  // namespace leasehold::detail
