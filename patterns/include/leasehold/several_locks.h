// Several locks at once: all or none.
#pragma once

#include <chrono>
#include <initializer_list>
#include <memory>
#include <stop_token>
#include <string_view>
#include <vector>

#include "leasehold/client.h"

namespace leasehold {

// The leases that acquire_all() gives. Held while the object lives, each renewed by itself.
// Move-only. The destructor hands the releases to the background and returns at once.
//
// All const methods are thread safe and do not block.
template <class HeldLease>
class LeasesOf {
 public:
  LeasesOf(LeasesOf&&) noexcept;
  LeasesOf& operator=(LeasesOf&&) noexcept;  // releases what was held before
  ~LeasesOf();

  // In the order in which they were taken, which is that of the bytes of their names.
  const std::vector<HeldLease>& each() const { return leases_; }
  // A null pointer if that lock is not among them.
  const HeldLease* find(const LockName& lock) const;

  // The checkpoint before a side effect: has every lease `margin` left? Else `lost`, for the first
  // that has not.
  template <class Rep = Millis::rep, class Period = Millis::period>
  [[nodiscard]] Status require(std::chrono::duration<Rep, Period> margin = {}) const {
    return require_left(detail::within_reason(margin));
  }

  // Requested when the first of them is lost; as Lease::lost().
  std::stop_token lost() const;

  // Ends all leases, the last taken first, and waits for the store's answers: at most `timeout` in
  // all. Afterwards they are over whatever the answers; without one the background goes on trying.
  // `too_late` if one of them had ended before. Else it fails with the first failure, as
  // Lease::release() does. Not thread safe with itself and with moving.
  [[nodiscard]] Result<ReleaseOutcome> release(Millis timeout = std::chrono::seconds(5),
                                               std::stop_token stop = {});

 private:
  template <class Held>
  friend Result<LeasesOf<Held>> acquire_each(Client& client, std::vector<LockName> locks,
                                             const AcquireOptions& options);
  class Losses;
  explicit LeasesOf(std::vector<HeldLease> leases);
  Status require_left(BootClock::duration margin) const;

  std::vector<HeldLease> leases_;
  std::unique_ptr<Losses> losses_;
};

using Leases = LeasesOf<Lease>;
using FencedLeases = LeasesOf<FencedLease>;  // each has its own token()

// Takes all of these locks, or none. They are taken one after the other in the order of the bytes
// of their names, whatever the order here: so two callers cannot wait for each other for ever, if
// neither holds one of the locks before it calls.
//
// Blocks at most about options.wait, which is for all of them together, and options.store_timeout
// for each. What was taken is given back before a failure is returned, unless the store does not
// answer or stop was requested: then the background goes on. The options are for each lock alike.
//
// Thread safe. Fails with
// - what Client::acquire() says of the first lock that could not be had (`busy`, `timeout` and so
//   on); the message names it;
// - `lost`: one was lost while others were waited for;
// - `invalid`: a name is there twice, none is there, or one is not a lock's name. Nothing was
//   asked.
[[nodiscard]] Result<Leases> acquire_all(Client& client, std::vector<LockName> locks,
                                         AcquireOptions options = {});
[[nodiscard]] Result<Leases> acquire_all(Client& client,
                                         std::initializer_list<std::string_view> locks,
                                         AcquireOptions options = {});

// The same with tokens; as Client::acquire_fenced().
[[nodiscard]] Result<FencedLeases> acquire_all_fenced(Client& client, std::vector<LockName> locks,
                                                      AcquireOptions options = {});
[[nodiscard]] Result<FencedLeases> acquire_all_fenced(Client& client,
                                                      std::initializer_list<std::string_view> locks,
                                                      AcquireOptions options = {});

}  // namespace leasehold
