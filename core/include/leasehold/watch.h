// Who holds a lock, told as it changes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "leasehold/store.h"

namespace leasehold {

namespace detail {
class ClientCore;
struct Observer;
}  // namespace detail

struct WatchOptions {
  // How often the store is asked although it told nothing: 10 ms to 1 h. Not given: every second
  // where the store tells changes by itself (every ten if the client watches more than eight
  // locks), and of a prefix; else every 250 ms. A holder's end is looked for besides when its time
  // is over.
  std::optional<Millis> look_every{};
};

// What an observer is told is a state, never a step; so nothing is lost silently:
// - The whole state at once, and again after each change of those who hold the lock.
// - An error if it cannot be seen (the store does not answer within two seconds, ten for a prefix;
//   or the connection on which the store tells changes was lost): what was told before may be out
//   of date. Told once, until the state is told again, changed or not.
// - Between two looks a holder may have come and gone. The tokens tell: the one of the next holder,
//   or last_token where the store remembers it. If many locks are watched, last_token may be
//   missing while a lock is free.
// - Who waits is told as it is at that moment; that only the waiters have changed is not told.
// `unsupported` if the store cannot show its locks: then nothing else will ever come.
using LockObserver = std::function<void(const Result<LockStatus>&)>;

// The same for many: at first, and after an error, all that are held; from then on those that have
// changed. One that is free now has no holders. After an error those come too that were told as
// held before and are free now, so that whoever keeps a table only has to replace what is told.
using LocksObserver = std::function<void(const Result<std::vector<LockStatus>>&)>;

// An observer at work, from Client::watch() on. Move-only. It keeps what it needs alive, so it may
// outlive the client. Not thread safe.
//
// An observer is called by one thread at a time, on one of at most four threads that a client has
// for its observers and for nothing else. A slow one is told the latest state next, and misses
// those in between. Four that never return keep the others from being told; renewals, losses and
// the callbacks of Lease::lost() do not wait for any. It may use the client, and end its own watch.
// It must not throw.
class Watch {
 public:
  Watch(Watch&&) noexcept;
  Watch& operator=(Watch&&) noexcept;  // ends the one before
  // Blocks until the observer has returned if it is being called, unless it is this call that ends
  // the watch. It is not called any more. In a forked child it does nothing.
  ~Watch();

 private:
  friend class detail::ClientCore;
  Watch(std::shared_ptr<detail::ClientCore> core, std::shared_ptr<detail::Observer> observer);
  void end() noexcept;

  std::shared_ptr<detail::ClientCore> core_;
  std::shared_ptr<detail::Observer> observer_;
};

}  // namespace leasehold
