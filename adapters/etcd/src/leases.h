// The etcd leases of one client: one per TTL, shared by all its locks, and one for its places in
// queues. Nothing here keeps a lease alive unasked.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "kit/threads/thread_safety.h"
#include "leasehold/ttl.h"
#include "transport.h"

namespace leasehold::etcd {

using LeaseId = std::int64_t;

struct EtcdLease {
  LeaseId id = 0;
  Millis ttl{0};       // the server's answer: at least what was asked for
  BootTime refreshed;  // when the grant or keep-alive was sent that it counts from

  Millis age(BootTime now) const { return std::chrono::ceil<Millis>(now - refreshed); }
};

// Which of the leases: that for locks of so many seconds, or that of the waiters.
class LeaseKind {
 public:
  static LeaseKind locks(const Ttl& ttl) {
    return LeaseKind(std::chrono::ceil<std::chrono::seconds>(ttl.length()).count());
  }
  static LeaseKind waiters() { return LeaseKind(0); }

  std::int64_t seconds() const { return seconds_ == 0 ? 2 : seconds_; }
  auto operator<=>(const LeaseKind&) const = default;

 private:
  explicit LeaseKind(std::int64_t seconds) : seconds_(seconds) {}
  std::int64_t seconds_;
};

// Thread safe, never blocks.
class Leases {
 public:
  explicit Leases(Transport& transport) : transport_(transport) {}

  // A lease that should be alive; made if there is none, once for all who ask meanwhile, and again
  // for those who have more time than who asked first. At once on the caller's thread if it is
  // there.
  void with_lease(LeaseKind kind, const Limits& limits, Done<EtcdLease> done);

  // Ends the waiting of those who have no time for it any more, or are stopped. To be called now
  // and then while somebody waits.
  void end_waits(BootTime now);
  bool any_waits() const;

  // Keeps it alive once; false: it is gone, and the next with_lease() makes a new one.
  void refresh(LeaseId id, const Limits& limits, Done<bool> done);

  // As far as is known here: it may have died meanwhile. Nothing: there is none of this kind.
  std::optional<EtcdLease> current(LeaseKind kind) const;
  std::optional<EtcdLease> find(LeaseId id) const;
  std::vector<EtcdLease> all() const;

  // The server said that it is gone.
  void forget(LeaseId id);

 private:
  struct Wish {
    Limits limits;
    Done<EtcdLease> done;
  };
  struct Entry {
    std::optional<EtcdLease> lease;
    bool being_made = false;
    std::vector<Wish> wanted_by = {};  // those who wait for that
  };
  void make(LeaseKind kind, BootTime deadline);
  // Those who want it no longer than until then; all, if it was made or never will be.
  std::vector<Wish> take_wishes(LeaseKind kind, std::optional<BootTime> until)
      LEASEHOLD_REQUIRES(mutex_);

  Transport& transport_;
  mutable Mutex mutex_;
  std::map<LeaseKind, Entry> entries_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::etcd
