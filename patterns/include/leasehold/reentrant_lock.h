// A lock that its own holder may take again: counted, with one lease.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>

#include "leasehold/client.h"

namespace leasehold {

namespace detail {
template <class HeldLease>
class Reentry;
}  // namespace detail

// One taking of a reentrant lock. Move-only. The destructor gives it back; that of the last one
// gives back the lease, as a Lease's does.
template <class HeldLease>
class HoldOf {
 public:
  HoldOf(HoldOf&&) noexcept;
  HoldOf& operator=(HoldOf&&) noexcept;  // gives back what was held before
  ~HoldOf();

  // The lease that all of them share, with the same token. Not to be used after this hold.
  const HeldLease& lease() const { return *lease_; }
  const HeldLease* operator->() const { return lease_; }

  // Gives this one back. The last one ends the lease and waits for the store's answer, as
  // Lease::release() does, and fails as that does; the others return at once: `released` if the
  // lease was held until now. `too_late` also from a second call. Not thread safe with itself and
  // with moving.
  [[nodiscard]] Result<ReleaseOutcome> release(Millis timeout = std::chrono::seconds(5),
                                               std::stop_token stop = {});

 private:
  friend class detail::Reentry<HeldLease>;
  HoldOf(std::shared_ptr<detail::Reentry<HeldLease>> reentry, const HeldLease& lease) noexcept;
  void abandon() noexcept;

  std::shared_ptr<detail::Reentry<HeldLease>> reentry_;
  const HeldLease* lease_;
};

// Who holds is this object, and whoever was given it: not a thread, and not the process. A second
// object for the same lock is somebody else. Thread safe; two threads that use one object hold the
// lock together, and must keep each other out by other means.
//
// The holds may outlive the object.
template <class HeldLease>
class ReentrantLockOf {
 public:
  ReentrantLockOf(Client client, LockName lock);
  ~ReentrantLockOf();
  ReentrantLockOf(const ReentrantLockOf&) = delete;

  // The first one takes the lock, blocks and fails as Client::acquire() or acquire_fenced() does.
  // While there are holds, the others share their lease: at once, without asking the store, and
  // whatever their options say of TTL and note. While the first one is on its way to the store, or
  // the last one on its way back, others wait for it, at most about wait + store_timeout.
  //
  // A lease that is lost is not taken anew while there are holds of it: what they protect was
  // begun under a lock that somebody else may have had since. Fails then with `lost`, until the
  // last of them has gone. Also fails with
  // - `invalid`: it is held in another mode. Shared and exclusive would wait for each other;
  // - `busy`, `timeout` (after a wait) or `cancelled`: the one on its way took too long.
  [[nodiscard]] Result<HoldOf<HeldLease>> acquire(const AcquireOptions& options = {});

 private:
  std::shared_ptr<detail::Reentry<HeldLease>> reentry_;
};

using ReentrantLock = ReentrantLockOf<Lease>;
using FencedReentrantLock = ReentrantLockOf<FencedLease>;
using ReentrantHold = HoldOf<Lease>;
using FencedReentrantHold = HoldOf<FencedLease>;

}  // namespace leasehold
