// The thin driver: gives the engine threads, a clock and a store.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <stop_token>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/timing.h"
#include "kit/recycled_memory.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/async.h"
#include "leasehold/client.h"
#include "own_process.h"
#include "slot.h"
#include "task_threads.h"
#include "wake_timer.h"
#include "watch/watch_hub.h"

namespace leasehold::detail {

inline Status check_store_timeout(Millis span) {
  if (span > Millis(0)) return {};
  return fail(ErrorCode::invalid, "store_timeout is not positive");
}

inline Error cannot_start(const std::system_error& why) {
  return Error(ErrorCode::unavailable, "this process cannot start what a client needs", why.what());
}

inline Error client_went() {
  return Error(ErrorCode::cancelled, "the client went away before this was done");
}

// When a lease ends, and that it has ended. A reader may see the deadline pass while a thread that
// looked at the clock before is about to move it: whoever comes first has it for ever, so both are
// one word.
class LeaseEnd {
 public:
  explicit LeaseEnd(BootTime deadline) : word_(word_of(deadline)) {}

  BootTime deadline() const { return deadline_of(word_.load()); }
  // Zero has ended it.
  BootClock::duration left(const Clock& clock) const;
  // False: it has ended before.
  bool move(BootTime deadline);
  void end() { word_ |= kEnded; }

 private:
  static constexpr BootClock::rep kEnded = 1;
  static BootClock::rep word_of(BootTime deadline) {
    return deadline.time_since_epoch().count() << 1;
  }
  static BootTime deadline_of(BootClock::rep word) {
    return BootTime(BootClock::duration(word >> 1));
  }

  mutable std::atomic<BootClock::rep> word_;
};

// What a Lease object knows. The atomics are written by the core and read without its lock.
struct LeaseControl {
  LeaseControl(std::shared_ptr<ClientCore> owner, engine::Grant given);

  bool in_forked_child() const;
  BootClock::duration remaining() const;
  LeaseState state() const;
  // True for the one caller who may release.
  bool begin_release() { return !releasing.exchange(true); }

  const std::shared_ptr<ClientCore> core;
  const engine::Grant grant;
  const Token token;
  LeaseEnd end;
  std::atomic<bool> uncertain = false;
  std::atomic<bool> releasing = false;
  std::stop_source lost;
};

// A question that stands in line for a thread.
class Unasked {
 public:
  virtual ~Unasked() = default;
  virtual void time_is_over() = 0;
};

// Threads: the timer thread only declares loss by time and finds out what is due; renewals that are
// due run on `renewals_`, where nothing else can delay them, some threads per lane
// (engine/timing.h) in use; other store calls that are due on `calls_`, the users' stop callbacks
// on `callbacks_`; those who watch have threads of their own (watch/watch_hub.h); the first attempt
// of an acquire or release is made on the caller's own thread.
class ClientCore final : public StoreEvents, public std::enable_shared_from_this<ClientCore> {
 public:
  static std::shared_ptr<ClientCore> make(std::unique_ptr<Store> store, ConnectOptions options);
  ~ClientCore() override;

  const StoreTraits& traits() const { return store_->traits(); }
  const Clock& clock() const { return clock_; }
  const OwnProcess& process() const { return process_; }

  Result<Lease> acquire(const LockName& lock, const AcquireOptions& options);
  Result<FencedLease> acquire_fenced(const LockName& lock, const AcquireOptions& options);
  Result<ReleaseOutcome> release(LeaseControl& lease, Millis keep_for, Millis timeout,
                                 const std::stop_token& stop) LEASEHOLD_EXCLUDES(mutex_);
  void drop(LeaseControl& lease) LEASEHOLD_EXCLUDES(mutex_);
  void stop_renewing(const LeaseControl& lease) LEASEHOLD_EXCLUDES(mutex_);
  void resume_renewing(const LeaseControl& lease) LEASEHOLD_EXCLUDES(mutex_);
  std::optional<Error> renewal_error() LEASEHOLD_EXCLUDES(mutex_);

  Result<Watch> watch(const LockName& lock, LockObserver observer, const WatchOptions& options);
  Result<Watch> watch_prefix(std::string_view prefix, LocksObserver observer,
                             const WatchOptions& options);
  void unwatch(const std::shared_ptr<Observer>& observer) { watches_.remove(observer); }

  // The same calls, without a caller who waits (async_core.cc). Held: Lease or FencedLease.
  template <class Held>
  void begin_acquire(Result<LockName> lock, AcquireOptions options, OnResult<Held> done)
      LEASEHOLD_EXCLUDES(mutex_);
  void begin_release(std::shared_ptr<LeaseControl> lease, Millis keep_for, CallOptions options,
                     OnResult<ReleaseOutcome> done) LEASEHOLD_EXCLUDES(mutex_);
  // Fails with `unavailable` if the system has no thread left, with `invalid` in a forked child.
  Status start_async();
  // Never on the thread that calls this, unless it is the only one of a forked child.
  template <class Value>
  void tell_later(OnResult<Value> done, Result<Value> result) {
    if (process_.is_forked_child()) return done(std::move(result));
    tell_on(is_async_ ? completions_ : callbacks_, std::move(done), std::move(result));
  }
  TaskThreads& asking() { return asking_; }
  // It is told when its time is over, on the timer's thread, unless it has left the line.
  using PlaceInLine = std::pair<BootTime, const Unasked*>;
  void stand_in_line(PlaceInLine place, std::weak_ptr<Unasked> question) LEASEHOLD_EXCLUDES(mutex_);
  void leave_line(PlaceInLine place) LEASEHOLD_EXCLUDES(mutex_);

  // Fails with `unsupported` if the store grants exclusive locks only.
  Status check_modes() const;
  // Fails with `invalid` in a forked child.
  Status check_process() const;
  Store& store() { return *store_; }

  void nudged(const RequestId& request) override LEASEHOLD_EXCLUDES(mutex_);
  void ended(const RequestId& request) override LEASEHOLD_EXCLUDES(mutex_);
  void changed(const LockName& lock) override { watches_.changed(lock); }
  void any_changed() override { watches_.any_changed(); }
  void tells_changes() override { watches_.tells(); }
  void tells_no_changes(const Error& why) override { watches_.tells_no_more(why); }

 private:
  ClientCore(std::unique_ptr<Store> store, ConnectOptions options);

  using LeasePointer = std::shared_ptr<LeaseControl>;
  using AcquireSlot = Slot<LeasePointer>;
  using ReleaseSlot = Slot<ReleaseOutcome>;
  using Calls = engine::Calls;

  Result<LeasePointer> take(const LockName& lock, const AcquireOptions& options)
      LEASEHOLD_EXCLUDES(mutex_);
  // What is wrong with the input, or what to ask the engine for; the lease's renewals have a
  // thread.
  Result<engine::AcquireSpec> prepare(const LockName& lock, const AcquireOptions& options);
  Status check_fenced() const;
  Calls begin(engine::AcquireSpec spec, AcquireSlot& slot, std::optional<RequestId>& request)
      LEASEHOLD_EXCLUDES(mutex_);
  Calls begin(LeaseControl& lease, Millis keep_for, Millis timeout, ReleaseSlot& slot,
              bool& answered) LEASEHOLD_EXCLUDES(mutex_);
  // Which may come to be while this waits for the lock.
  void cancel(const std::optional<RequestId>& request) LEASEHOLD_EXCLUDES(mutex_);
  template <class Value, class Begin>
  void begin_alone(CompletionSlot<Value>& slot, Begin begin) LEASEHOLD_EXCLUDES(mutex_);
  void cancel_all() LEASEHOLD_EXCLUDES(mutex_);

  Status check_watch(bool has_observer, const WatchOptions& options) const;
  Result<Watch> begin_watch(const Watched& what, Observer::Callback callback,
                            const WatchOptions& options);

  // Gives the engine one event, tells what came of it, and returns the calls to make.
  template <class Event>
  Calls feed(Event event) LEASEHOLD_EXCLUDES(mutex_);
  Calls settle() LEASEHOLD_REQUIRES(mutex_);
  void arm_timer() LEASEHOLD_REQUIRES(mutex_);
  void on_time() LEASEHOLD_EXCLUDES(mutex_);
  template <class Value>
  Result<Value> await(CallersSlot<Value>& slot, const RequestId& request,
                      const std::stop_token& stop) LEASEHOLD_EXCLUDES(mutex_);
  void tell(engine::AcquireEnded& notice) LEASEHOLD_REQUIRES(mutex_);
  void tell(engine::ReleaseEnded& notice) LEASEHOLD_REQUIRES(mutex_);
  void tell(engine::LeaseChanged& notice) LEASEHOLD_REQUIRES(mutex_);

  void make_calls(Calls calls, const std::stop_token& stop = {});
  void make_calls_elsewhere(Calls calls);
  void stand_in_line(engine::SendAcquire send, TaskThreads& threads) LEASEHOLD_EXCLUDES(mutex_);
  // If it stands there: on this thread, unless nobody waits for it any more.
  bool make_from_line(const RequestId& request) LEASEHOLD_EXCLUDES(mutex_);
  TaskThreads& threads_for(const engine::StoreCall& call);
  template <class Reply>
  struct OneAnswer;
  void replied(RequestId request, Result<AcquireReply> reply) LEASEHOLD_EXCLUDES(mutex_);
  void replied(RequestId request, Result<ReleaseReply> reply) LEASEHOLD_EXCLUDES(mutex_);
  // What a reply causes: here, except for the withdrawal of what the caller has given up. It is for
  // the same caller, whose stop token it hears.
  void follow_up(Calls calls, const std::stop_token& stop);
  std::stop_token stop_of(const RequestId& request) LEASEHOLD_REQUIRES(mutex_);
  // Leaves out the leases that are no longer renewed: the call may have stood in line since then.
  void call_off(engine::SendRenew& send) LEASEHOLD_EXCLUDES(mutex_);
  template <class Replied, class Call>
  void guarded(Replied replied, Call call);
  void make(engine::SendAcquire& send, const std::stop_token& stop);
  void make(engine::SendRenew& send, const std::stop_token& stop);
  void make(engine::SendRelease& send, const std::stop_token& stop);

  const OwnProcess process_;
  const Clock& clock_;
  const OwnerLabel owner_;
  TaskThreads completions_{1, TaskThreads::AtEnd::finish};  // outlives all that may tell one
  std::unique_ptr<Store> store_;

  Mutex mutex_;
  ConditionVariable settled_;
  engine::Engine engine_ LEASEHOLD_GUARDED_BY(mutex_);
  std::vector<engine::Notice> notices_ LEASEHOLD_GUARDED_BY(mutex_);
  kit::RecycledMemory memory_ LEASEHOLD_GUARDED_BY(mutex_);
  template <class Value>
  using ByRequest = std::pmr::unordered_map<RequestId, Value>;
  ByRequest<AcquireSlot*> acquiring_ LEASEHOLD_GUARDED_BY(mutex_){&memory_};
  ByRequest<engine::SendAcquire> in_line_ LEASEHOLD_GUARDED_BY(mutex_){&memory_};
  ByRequest<ReleaseSlot*> releasing_ LEASEHOLD_GUARDED_BY(mutex_){&memory_};
  ByRequest<LeaseControl*> leases_ LEASEHOLD_GUARDED_BY(mutex_){&memory_};
  std::map<PlaceInLine, std::weak_ptr<Unasked>> unasked_ LEASEHOLD_GUARDED_BY(mutex_);
  std::optional<BootTime> armed_for_ LEASEHOLD_GUARDED_BY(mutex_);
  std::optional<Error> renewal_error_ LEASEHOLD_GUARDED_BY(mutex_);

  // Several threads, so that a call which hangs does not cost those behind it.
  struct Lane : TaskThreads {
    Lane() : TaskThreads(4) {}
  };
  TaskThreads callbacks_{1, TaskThreads::AtEnd::finish};
  TaskThreads calls_{4};
  TaskThreads asking_{4};
  std::atomic<bool> is_async_ = false;  // asking_ and completions_ have a thread
  std::array<Lane, engine::kRenewalLanes> renewals_;
  WatchHub watches_;
  WakeTimer timer_;
};

}  // namespace leasehold::detail
