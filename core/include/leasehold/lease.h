// One holder's claim on one lock for a bounded time.
#pragma once

#include <memory>
#include <stop_token>

#include "leasehold/error.h"
#include "leasehold/id.h"
#include "leasehold/mode.h"
#include "leasehold/name.h"
#include "leasehold/time.h"
#include "leasehold/token.h"

namespace leasehold {

namespace detail {
struct LeaseControl;
class ClientCore;
}  // namespace detail

enum class LeaseState {
  held,       // renewed in time, as far as this process knows
  uncertain,  // a renewal failed; the deadline is not reached yet, and renewing goes on
  lost,       // over for ever: the deadline passed, the store said so, or it was released
};
std::string_view to_string(LeaseState state);

enum class ReleaseOutcome {
  released,  // it was held until now, and is free
  too_late,  // it had ended before: somebody else may have worked meanwhile
};

class FencedLease;

// Held while the object lives, and renewed in the background. Move-only. The destructor hands the
// release to the background and returns at once.
//
// All const methods are thread safe, do not block and do not fail: they compare the lease's
// deadline with the boot clock, so they are right even in the first instant after a long pause.
//
// A lease belongs to the process that took it. In a forked child state() is `lost`, every
// operation fails with `lost`, and the destructor does nothing.
class Lease {
 public:
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;  // releases what was held before
  Lease(FencedLease&&) = delete;       // its token would be gone
  Lease& operator=(FencedLease&&) = delete;
  ~Lease();

  const LockName& lock() const;
  const RequestId& request() const;

  // The time to live that the store really gave: more than was asked where it counts in seconds
  // (etcd), less where its server limits it (ZooKeeper's sessions).
  Millis ttl() const;

  Mode mode() const;
  // Of a permit: which one, from 0 on. Its fence is that of the slot: resource NAME#slot.
  std::optional<Slot> slot() const;

  LeaseState state() const;

  // When this process must have stopped working; earlier than the store's own expiry.
  BootTime deadline() const;

  // Time until the deadline; zero when lost.
  BootClock::duration remaining() const;

  // The checkpoint before a side effect: is there `margin` left? Else `lost`.
  template <class Rep = Millis::rep, class Period = Millis::period>
  [[nodiscard]] Status require(std::chrono::duration<Rep, Period> margin = {}) const {
    return require_left(detail::within_reason(margin));
  }

  // Requested when the lease is lost, before it expires at the store; not when it is released in
  // time. Callbacks run on a thread that does nothing else; a slow one delays other callbacks,
  // never a renewal or a loss.
  std::stop_token lost() const;

  // The lease is kept but no longer renewed: it ends at deadline(), and its loss is told as any
  // other, unless it is released before. For a holder who cannot tell whether the work goes on, and
  // must not let anybody else in early. A renewal that is on its way to the store already may still
  // move the deadline; none is sent afterwards. While it lasts, state() stays as it was until the
  // lease is lost.
  //
  // resume_renewing() takes it back, and renews at once. It never brings a lost lease back.
  //
  // Both are thread safe and do not block. They do nothing if it is so already, and to a lease that
  // is lost, released or, in a forked child, another process's.
  void stop_renewing();
  void resume_renewing();

  // Ends the lease and waits for the store's answer, at most `timeout`. Afterwards the lease is
  // over whatever the answer; without one the background goes on trying. `too_late`: it was lost
  // before, or released by an earlier call. Not thread safe with itself and with moving the lease.
  // Fails with `unavailable`, `outcome_unknown`, what the store refuses it with or, because of the
  // stop token, `cancelled`: the lock is then free at the latest after ttl(), or after `keep_for`
  // if that is longer.
  [[nodiscard]] Result<ReleaseOutcome> release(Millis timeout = std::chrono::seconds(5),
                                               std::stop_token stop = {});

  // The same, but nobody else gets the lock before `keep_for` has passed, although no process holds
  // it any more (SQLite: or a reboot). `unsupported` where the store cannot (the lease goes on).
  [[nodiscard]] Result<ReleaseOutcome> release_after(Millis keep_for,
                                                     Millis timeout = std::chrono::seconds(5),
                                                     std::stop_token stop = {});

 protected:
  friend class detail::ClientCore;
  explicit Lease(std::shared_ptr<detail::LeaseControl> control);
  const detail::LeaseControl& control() const { return *control_; }

 private:
  friend class AsyncClient;
  Status check_keeping() const;
  Result<ReleaseOutcome> end(Millis keep_for, Millis timeout, const std::stop_token& stop);
  Status require_left(BootClock::duration margin) const;
  void abandon() noexcept;
  std::shared_ptr<detail::LeaseControl> control_;
};

// A lease that carries a token for a fence. Only a store whose tokens are worth `correctness`
// gives one.
class FencedLease : public Lease {
 public:
  // Captured at the grant; never read from the store afterwards.
  const Token& token() const;

  FencedLease(FencedLease&&) noexcept = default;
  FencedLease& operator=(FencedLease&&) noexcept = default;

 private:
  friend class detail::ClientCore;
  using Lease::Lease;
};

}  // namespace leasehold
