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
  Granted granted = {TokenNumber::of(1).value(), id_, Millis(0), false};
  {
    const MutexLock lock(mutex_);
    Row& row = rows_[call.lock];
    const BootTime now = BootClock::now();
    const bool held = row.holder && row.expires > now;
    if (held && row.holder != call.request) return Busy{row.owner};
    granted.ttl = std::min(call.ttl.length(), longest_);
    if (!held) row = {row.token + 1, call.request, call.owner.str(), now + granted.ttl};
    granted.token = TokenNumber::of(row.token).value();
    granted.fresh = !held;
  }
  tell_change(call.lock);
  return granted;
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
  bool alive = false;
  {
    const MutexLock lock(mutex_);
    Row& row = rows_[call.lock];
    alive = row.holder == call.request && row.expires > BootClock::now();
    if (row.holder == call.request) row.holder.reset();
  }
  tell_change(call.lock);
  return alive ? ReleaseReply::released : ReleaseReply::not_held;
}

// ---- looking -------------------------------------------------------------------------------

LockStatus MemoryStore::status_of(const LockName& lock) {
  LockStatus status{
      .lock = lock, .store = id_, .last_token = std::nullopt, .holders = {}, .waiters = {}};
  const auto found = rows_.find(lock);
  if (found == rows_.end() || found->second.token == 0) return status;
  const Row& row = found->second;
  status.last_token = TokenNumber::of(row.token).value();
  const auto left = std::chrono::ceil<Millis>(row.expires - BootClock::now());
  if (!row.holder || left <= Millis(0)) return status;
  status.holders.push_back({.request = *row.holder,
                            .token = *status.last_token,
                            .owner = row.owner,
                            .held_for = Millis(0),
                            .remaining = left});
  return status;
}

Result<LockStatus> MemoryStore::do_inspect(const InspectCall& call, const CallContext&) {
  const MutexLock lock(mutex_);
  return status_of(call.lock);
}

Result<std::vector<LockStatus>> MemoryStore::do_list(const CallContext&) {
  std::vector<LockStatus> all;
  const MutexLock lock(mutex_);
  for (const auto& [name, row] : rows_) {
    LockStatus status = status_of(name);
    if (!status.holders.empty()) all.push_back(std::move(status));
  }
  return all;
}

void MemoryStore::watch(const LockName& lock) {
  {
    const MutexLock guard(mutex_);
    hinted_.insert(lock);
  }
  if (!tells_.exchange(true)) events().tells_changes();
  events().changed(lock);
}

void MemoryStore::lose_hints() {
  tells_ = false;
  events().tells_no_changes(Error(ErrorCode::unavailable, "cut"));
}

void MemoryStore::unwatch(const LockName& lock) {
  const MutexLock guard(mutex_);
  hinted_.erase(lock);
}

std::size_t MemoryStore::hinted() {
  const MutexLock guard(mutex_);
  return hinted_.size();
}

void MemoryStore::tell_change(const LockName& lock) {
  {
    const MutexLock guard(mutex_);
    if (!hinted_.contains(lock)) return;
  }
  events().changed(lock);
}

}  // namespace leasehold::testing
