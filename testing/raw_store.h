// A store without the engine: one call, one answer, no retry.
#pragma once

#include <future>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "kit/threads/thread_safety.h"
#include "leasehold/store.h"

namespace leasehold::testing {

inline LockName lock_name(std::string_view text) {
  return LockName::parse(text).value();
}

inline RequestId new_request() {
  return RequestId::random(system_random());
}

// Remembers what the store told unasked.
class SeenEvents final : public StoreEvents {
 public:
  void nudged(const RequestId& request) override {
    MutexLock lock(mutex_);
    nudged_.insert(request);
    changed_.notify_all();
  }
  void ended(const RequestId& request) override {
    MutexLock lock(mutex_);
    ended_.insert(request);
    changed_.notify_all();
  }
  bool wait_for_nudge(const RequestId& request, Millis timeout) {
    MutexLock lock(mutex_);
    return changed_.wait_for(
        mutex_, timeout, [&]() LEASEHOLD_REQUIRES(mutex_) { return nudged_.contains(request); });
  }
  void forget_nudges() {
    MutexLock lock(mutex_);
    nudged_.clear();
  }
  bool was_ended(const RequestId& request) {
    MutexLock lock(mutex_);
    return ended_.contains(request);
  }
  std::size_t nudges() {
    MutexLock lock(mutex_);
    return nudged_.size();
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::set<RequestId> nudged_ LEASEHOLD_GUARDED_BY(mutex_);
  std::set<RequestId> ended_ LEASEHOLD_GUARDED_BY(mutex_);
};

class RawStore {
 public:
  explicit RawStore(std::unique_ptr<Store> opened, std::string_view lock = "job",
                    Millis call_timeout = std::chrono::seconds(10))
      : lock_(lock_name(lock)), call_timeout_(call_timeout), store_(std::move(opened)) {
    store_->start(events);
  }
  ~RawStore() { store_->close(); }

  Result<AcquireReply> acquire(const RequestId& request, Millis ttl = std::chrono::seconds(30),
                               bool queue = false) {
    return acquire_another(lock_, request, ttl, queue);
  }
  Result<AcquireReply> acquire_another(const LockName& lock, const RequestId& request,
                                       Millis ttl = std::chrono::seconds(30), bool queue = false) {
    return ask<AcquireReply>([&](auto done) {
      store_->acquire(
          {lock, request, OwnerLabel::parse("raw").value(), Ttl::of(ttl).value(), queue}, context(),
          std::move(done));
    });
  }
  Result<AcquireReply> acquire_as(Mode mode, const RequestId& request, bool queue = false,
                                  Millis ttl = std::chrono::seconds(30),
                                  std::string_view note = "") {
    return ask<AcquireReply>([&](auto done) {
      store_->acquire({lock_, request, OwnerLabel::parse("raw").value(), Ttl::of(ttl).value(),
                       queue, mode, Note::parse(note).value()},
                      context(), std::move(done));
    });
  }
  Status set_permits(std::optional<std::int64_t> permits) {
    const auto set = ask<std::monostate>(
        [&](auto done) { store_->set_permits(lock_, permits, context(), std::move(done)); });
    return set ? Status() : fail(set.error());
  }
  Result<std::vector<RenewReply>> try_renew(const RequestId& request,
                                            Millis ttl = std::chrono::seconds(30)) {
    return renew_together({{lock_, request, Ttl::of(ttl).value()}});
  }
  Result<std::vector<RenewReply>> renew_together(std::vector<RenewCall> calls) {
    return ask<std::vector<RenewReply>>(
        [&](auto done) { store_->renew(std::move(calls), context(), std::move(done)); });
  }
  Result<ReleaseReply> try_release(const RequestId& request, Millis keep_for = Millis(0)) {
    return release_another(lock_, request, keep_for);
  }
  Result<ReleaseReply> release_another(const LockName& lock, const RequestId& request,
                                       Millis keep_for = Millis(0)) {
    return ask<ReleaseReply>([&](auto done) {
      store_->release({lock, request, keep_for}, context(), std::move(done));
    });
  }
  Result<ReleaseReply> force_release(const RequestId& seen) {
    return ask<ReleaseReply>(
        [&](auto done) { store_->force_release(lock_, seen, context(), std::move(done)); });
  }
  Result<LockStatus> inspect() {
    return ask<LockStatus>([&](auto done) { store_->inspect(lock_, context(), std::move(done)); });
  }

  RenewReply renew(const RequestId& request) { return try_renew(request).value().at(0); }
  ReleaseReply release(const RequestId& request) { return try_release(request).value(); }
  std::int64_t token(const RequestId& request) {
    return std::get<Granted>(acquire(request).value()).token.value();
  }

  const StoreTraits& traits() const { return store_->traits(); }

  SeenEvents events;

 private:
  template <class Reply, class Call>
  Result<Reply> ask(Call call) {
    // Shared: a completion may come on a thread that is still in set_value when get() returns.
    const auto answer = std::make_shared<std::promise<Result<Reply>>>();
    call([answer](Result<Reply> reply) { answer->set_value(std::move(reply)); });
    return answer->get_future().get();
  }
  CallContext context() const { return {BootClock::now() + call_timeout_, {}}; }

  const LockName lock_;
  const Millis call_timeout_;
  std::unique_ptr<Store> store_;
};

}  // namespace leasehold::testing
