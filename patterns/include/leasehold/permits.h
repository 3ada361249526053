// N permits for what there are N of: each lease has a slot, and a fence of its own.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "leasehold/client.h"

namespace leasehold {

class Permits;

namespace detail {
ResourceName resource_of_slot(const LockName& lock, Slot slot);
}  // namespace detail

// A lease on one of N slots.
template <class HeldLease>
class PermitOf : public HeldLease {
 public:
  // From 0 on: it names the GPU, the licence or the connection.
  Slot slot() const { return HeldLease::slot().value(); }
  // Whose fence the token is for: NAME#slot. Never the lock's own name: at one fence the later of
  // two holders would shut the earlier out.
  ResourceName resource() const { return detail::resource_of_slot(this->lock(), slot()); }

 private:
  friend class Permits;
  explicit PermitOf(HeldLease lease) : HeldLease(std::move(lease)) {}
};

using Permit = PermitOf<Lease>;
using FencedPermit = PermitOf<FencedLease>;

// Thread safe; a cheap handle, as Client is.
class Permits {
 public:
  // Asks the store for nothing yet. `invalid`: the number is not 1 to Mode::kMostPermits, the name
  // is none, or it is so long that NAME#slot is no resource's name.
  [[nodiscard]] static Result<Permits> of(Client client, std::string_view lock,
                                          std::int64_t permits);

  // The lowest slot that is free. Block and fail as Client::acquire() and acquire_fenced() do; also
  // with `unsupported` if the store has no permits. options.mode is not looked at.
  [[nodiscard]] Result<Permit> acquire(AcquireOptions options = {});
  [[nodiscard]] Result<FencedPermit> acquire_fenced(AcquireOptions options = {});

 private:
  Permits(Client client, LockName lock, Mode mode);
  Client client_;
  LockName lock_;
  Mode mode_;
};

}  // namespace leasehold
