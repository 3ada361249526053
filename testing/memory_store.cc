#include "testing/memory_store.h"

#include <algorithm>

namespace leasehold::testing {

MemoryStore::MemoryStore(Guarantee guarantee) : id_(StoreId::random(system_random())) {
  traits_.address = "memory:";
  traits_.guarantee = guarantee;
  traits_.why = "its counter is lost with the process";
  traits_.instead = "Use a store that writes to disk.";
}

void MemoryStore::give_at_most(Millis ttl) {
  const MutexLock lock(mutex_);
  longest_ = ttl;
}

std::optional<RequestId> MemoryStore::holder(const LockName& lock) {
  const MutexLock locked(mutex_);
  const Row& row = rows_[lock];
  return row.expires > BootClock::now() ? row.holder : std::nullopt;
}

void MemoryStore::take_away(const RequestId& request) {
  const MutexLock lock(mutex_);
  for (auto& [name, row] : rows_) {
    if (row.holder == request) row.holder.reset();
  }
}

void MemoryStore::end(const RequestId& request) {
  take_away(request);
  events().ended(request);
}

Result<AcquireReply> MemoryStore::do_acquire(const AcquireCall& call, const CallContext&) {
  const MutexLock lock(mutex_);
  Row& row = rows_[call.lock];
  const BootTime now = BootClock::now();
  const bool held = row.holder && row.expires > now;
  if (held && row.holder != call.request) return Busy{row.owner};
  const Millis ttl = std::min(call.ttl.length(), longest_);
  if (!held) row = {row.token + 1, call.request, call.owner.str(), now + ttl};
  return Granted{TokenNumber::of(row.token).value(), id_, ttl, !held};
}

Result<std::vector<RenewReply>> MemoryStore::do_renew(const std::vector<RenewCall>& calls,
                                                      const CallContext&) {
  std::vector<RenewReply> replies;
  const MutexLock lock(mutex_);
  const BootTime now = BootClock::now();
  for (const RenewCall& call : calls) {
    Row& row = rows_[call.lock];
    const bool alive = row.holder == call.request && row.expires > now;
    if (alive) row.expires = now + call.ttl.length();
    replies.push_back(alive ? RenewReply::renewed : RenewReply::gone);
  }
  return replies;
}

Result<ReleaseReply> MemoryStore::do_release(const ReleaseCall& call, const CallContext&) {
  const MutexLock lock(mutex_);
  Row& row = rows_[call.lock];
  const bool alive = row.holder == call.request && row.expires > BootClock::now();
  if (row.holder == call.request) row.holder.reset();
  return alive ? ReleaseReply::released : ReleaseReply::not_held;
}

}  // namespace leasehold::testing
