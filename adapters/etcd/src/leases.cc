#include "leases.h"

#include <utility>

#include "wire.pb.h"

namespace leasehold::etcd {

void Leases::with_lease(LeaseKind kind, const Limits& limits, Done<EtcdLease> done) {
  std::optional<EtcdLease> there;
  bool being_made = false;
  {
    MutexLock lock(mutex_);
    Entry& entry = entries_[kind];
    if (entry.lease && entry.lease->age(BootClock::now()) < entry.lease->ttl) {
      there = entry.lease;
    } else {
      being_made = !entry.wanted_by.empty();
      entry.wanted_by.push_back(done);
    }
  }
  if (there) return done(*there);
  if (!being_made) make(kind, limits);
}

void Leases::make(LeaseKind kind, const Limits& limits) {
  wire::LeaseGrantRequest request;
  request.set_ttl(kind.seconds());
  const BootTime sent = BootClock::now();
  // Others wait for it too, so the first one's stop token does not end it.
  transport_.call<wire::LeaseGrantRequest, wire::LeaseGrantResponse>(
      "/etcdserverpb.Lease/LeaseGrant", std::move(request),
      {.deadline = limits.deadline, .stop = {}, .repeat = true},
      [this, kind, sent](tl::expected<wire::LeaseGrantResponse, Failure> response) {
        tl::expected<EtcdLease, Failure> lease = tl::unexpected(Failure{});
        if (response) {
          lease = EtcdLease{response->id(), std::chrono::seconds(response->ttl()), sent};
        } else {
          lease = tl::unexpected(response.error());
          // A lease that may be there without its key hurts nobody: the caller's wish is undone.
          if (lease.error().ambiguous()) lease.error().kind = Failure::Kind::not_sent;
        }
        std::vector<Done<EtcdLease>> waiting;
        {
          MutexLock lock(mutex_);
          Entry& entry = entries_[kind];
          waiting.swap(entry.wanted_by);
          if (lease) entry.lease = *lease;
        }
        for (auto& done : waiting) done(lease);
      });
}

void Leases::refresh(LeaseId id, const Limits& limits, Done<bool> done) {
  wire::LeaseKeepAliveRequest request;
  request.set_id(id);
  const BootTime sent = BootClock::now();
  Limits repeated = limits;
  repeated.repeat = true;
  // etcd has a stream for this. One request and one answer look the same on the wire.
  transport_.call<wire::LeaseKeepAliveRequest, wire::LeaseKeepAliveResponse>(
      "/etcdserverpb.Lease/LeaseKeepAlive", std::move(request), repeated,
      [this, id, sent,
       done = std::move(done)](tl::expected<wire::LeaseKeepAliveResponse, Failure> response) {
        if (!response) return done(tl::unexpected(std::move(response.error())));
        const bool alive = response->ttl() > 0;
        if (!alive) {
          forget(id);
          return done(false);
        }
        {
          MutexLock lock(mutex_);
          for (auto& [kind, entry] : entries_) {
            if (!entry.lease || entry.lease->id != id) continue;
            entry.lease->refreshed = std::max(entry.lease->refreshed, sent);
          }
        }
        done(true);
      });
}

std::optional<EtcdLease> Leases::current(LeaseKind kind) const {
  MutexLock lock(mutex_);
  const auto found = entries_.find(kind);
  return found == entries_.end() ? std::nullopt : found->second.lease;
}

std::optional<EtcdLease> Leases::find(LeaseId id) const {
  MutexLock lock(mutex_);
  for (const auto& [kind, entry] : entries_) {
    if (entry.lease && entry.lease->id == id) return entry.lease;
  }
  return std::nullopt;
}

std::vector<EtcdLease> Leases::all() const {
  MutexLock lock(mutex_);
  std::vector<EtcdLease> leases;
  for (const auto& [kind, entry] : entries_) {
    if (entry.lease) leases.push_back(*entry.lease);
  }
  return leases;
}

void Leases::forget(LeaseId id) {
  MutexLock lock(mutex_);
  for (auto& [kind, entry] : entries_) {
    if (entry.lease && entry.lease->id == id) entry.lease.reset();
  }
}

}  // namespace leasehold::etcd
