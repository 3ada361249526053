#include "leases.h"

#include <algorithm>
#include <iterator>
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
      being_made = std::exchange(entry.being_made, true);
      entry.wanted_by.push_back({limits, done});
    }
  }
  if (there) return done(*there);
  if (!being_made) make(kind, limits.deadline);
}

void Leases::make(LeaseKind kind, BootTime deadline) {
  wire::LeaseGrantRequest request;
  request.set_ttl(kind.seconds());
  const BootTime sent = BootClock::now();
  // Others wait for it too, so the first one's stop token does not end it.
  transport_.call<wire::LeaseGrantRequest, wire::LeaseGrantResponse>(
      "/etcdserverpb.Lease/LeaseGrant", std::move(request),
      {.deadline = deadline, .stop = {}, .repeat = true},
      [this, kind, sent, deadline](tl::expected<wire::LeaseGrantResponse, Failure> response) {
        tl::expected<EtcdLease, Failure> lease = tl::unexpected(Failure{});
        if (response) {
          lease = EtcdLease{response->id(), std::chrono::seconds(response->ttl()), sent};
        } else {
          lease = tl::unexpected(response.error());
          // A lease that may be there without its key hurts nobody: the caller's wish is undone.
          if (lease.error().ambiguous()) lease.error().kind = Failure::Kind::not_sent;
        }
        const bool out_of_time = !lease && lease.error().kind == Failure::Kind::not_sent;
        std::vector<Wish> told;
        std::optional<BootTime> again;
        {
          MutexLock lock(mutex_);
          Entry& entry = entries_[kind];
          if (lease) entry.lease = *lease;
          told = take_wishes(kind, out_of_time ? std::optional(deadline) : std::nullopt);
          for (const Wish& wish : entry.wanted_by) {
            again = std::max(again.value_or(deadline), wish.limits.deadline);
          }
          entry.being_made = again.has_value();
        }
        if (again) make(kind, *again);
        for (const Wish& wish : told) wish.done(lease);
      });
}

std::vector<Leases::Wish> Leases::take_wishes(LeaseKind kind, std::optional<BootTime> until) {
  std::vector<Wish>& all = entries_[kind].wanted_by;
  const auto told = std::stable_partition(all.begin(), all.end(), [&](const Wish& wish) {
    return until && wish.limits.deadline > *until;
  });
  std::vector<Wish> taken(std::make_move_iterator(told), std::make_move_iterator(all.end()));
  all.erase(told, all.end());
  return taken;
}

// The call itself has the deadline of somebody else.
void Leases::end_waits(BootTime now) {
  std::vector<std::pair<Done<EtcdLease>, Failure>> ended;
  {
    MutexLock lock(mutex_);
    for (auto& [kind, entry] : entries_) {
      std::erase_if(entry.wanted_by, [&](Wish& wish) {
        const bool stopped = wish.limits.stop.stop_requested();
        if (!stopped && now < wish.limits.deadline) return false;
        ended.emplace_back(std::move(wish.done), stopped ? Failure{.kind = Failure::Kind::stopped}
                                                         : Failure{.kind = Failure::Kind::not_sent,
                                                                   .silence = true,
                                                                   .words = "no time was left"});
        return true;
      });
    }
  }
  for (auto& [done, why] : ended) done(tl::unexpected(std::move(why)));
}

bool Leases::any_waits() const {
  MutexLock lock(mutex_);
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const auto& it) { return !it.second.wanted_by.empty(); });
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
