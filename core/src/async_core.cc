// The driver without a caller who waits: calls are made on its own threads, and answers told there.
#include "client_core.h"
#include "kit/try.h"

namespace leasehold::detail {

Status ClientCore::start_async() {
  TRY(check_process());
  try {
    asking_.start();
    completions_.start();
  } catch (const std::system_error& error) {
    return fail(cannot_start(error));
  }
  is_async_ = true;
  return {};
}

void ClientCore::stand_in_line(PlaceInLine place, std::weak_ptr<Unasked> question) {
  MutexLock lock(mutex_);
  unasked_.emplace(place, std::move(question));
  arm_timer();
}

void ClientCore::leave_line(PlaceInLine place) {
  MutexLock lock(mutex_);
  unasked_.erase(place);
}

// The stop token may be requested before the engine knows the request, and the answer may come
// before this returns.
template <class Value, class Begin>
void ClientCore::begin_alone(CompletionSlot<Value>& slot, Begin begin) {
  slot.listen_to_stop([this, &slot] { cancel(slot.request); });
  make_calls_elsewhere(begin());
  if (slot.stop.stop_requested()) cancel(slot.request);
}

template <class Held>
void ClientCore::begin_acquire(Result<LockName> lock, AcquireOptions options, OnResult<Held> done) {
  auto spec = [&]() -> Result<engine::AcquireSpec> {
    TRY(start_async());
    if constexpr (std::is_same_v<Held, FencedLease>) TRY(check_fenced());
    return prepare(TRY(lock), options);
  }();
  if (!spec) return tell_later<Held>(std::move(done), fail(std::move(spec.error())));
  const auto slot = std::make_shared<CompletionSlot<LeasePointer>>(
      completions_, std::move(options.stop),
      [done = std::move(done)](Result<LeasePointer> taken) mutable {
        if (!taken) return done(fail(std::move(taken.error())));
        done(Held(std::move(*taken)));
      });
  begin_alone(*slot, [&] { return begin(std::move(*spec), *slot, slot->request); });
}

template void ClientCore::begin_acquire(Result<LockName>, AcquireOptions, OnResult<Lease>);
template void ClientCore::begin_acquire(Result<LockName>, AcquireOptions, OnResult<FencedLease>);

void ClientCore::begin_release(std::shared_ptr<LeaseControl> lease, Millis keep_for,
                               CallOptions options, OnResult<ReleaseOutcome> done) {
  LeaseControl& ending = *lease;
  // It has the lease, and so the core, until the completion has returned.
  const auto slot = std::make_shared<CompletionSlot<ReleaseOutcome>>(
      completions_, std::move(options.stop),
      [done = std::move(done), lease = std::move(lease)](Result<ReleaseOutcome> outcome) mutable {
        done(std::move(outcome));
      });
  slot->request = ending.grant.request;
  bool answered = false;
  begin_alone(*slot,
              [&] { return begin(ending, keep_for, options.store_timeout, *slot, answered); });
}

}  // namespace leasehold::detail
