#include "testing/memory_store.h"

namespace leasehold::testing {

MemoryStore::MemoryStore(Guarantee guarantee) : id_(StoreId::random(system_random())) {
  traits_.address = "memory:";
  traits_.guarantee = guarantee;
  traits_.why = "its counter is lost with the process";
  traits_.instead = "Use a store that writes to disk.";
}

void MemoryStore::start(StoreEvents& events) {
  events_ = &events;
}

void MemoryStore::end(const RequestId& request) {
  {
    const MutexLock lock(mutex_);
    for (auto& [name, row] : rows_) {
      if (row.holder == request) row.holder.reset();
    }
  }
  events_->ended(request);
}

void MemoryStore::acquire(AcquireCall call, CallContext, Completion<AcquireReply> done) {
  AcquireReply reply = [&]() -> AcquireReply {
    const MutexLock lock(mutex_);
    Row& row = rows_[call.lock];
    const BootTime now = BootClock::now();
    const bool held = row.holder && row.expires > now;
    if (held && row.holder != call.request) return Busy{row.owner};
    if (!held) row = {row.token + 1, call.request, call.owner.str(), now + call.ttl.length()};
    return Granted{TokenNumber::of(row.token).value(), id_, call.ttl.length(), !held};
  }();
  done(std::move(reply));
}

void MemoryStore::renew(std::vector<RenewCall> calls, CallContext,
                        Completion<std::vector<RenewReply>> done) {
  std::vector<RenewReply> replies;
  {
    const MutexLock lock(mutex_);
    const BootTime now = BootClock::now();
    for (const RenewCall& call : calls) {
      Row& row = rows_[call.lock];
      const bool alive = row.holder == call.request && row.expires > now;
      if (alive) row.expires = now + call.ttl.length();
      replies.push_back(alive ? RenewReply::renewed : RenewReply::gone);
    }
  }
  done(std::move(replies));
}

void MemoryStore::release(ReleaseCall call, CallContext, Completion<ReleaseReply> done) {
  const bool released = [&] {
    const MutexLock lock(mutex_);
    Row& row = rows_[call.lock];
    const bool alive = row.holder == call.request && row.expires > BootClock::now();
    if (row.holder == call.request) row.holder.reset();
    return alive;
  }();
  done(released ? ReleaseReply::released : ReleaseReply::not_held);
}

}  // namespace leasehold::testing
