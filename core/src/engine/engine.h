// The life of every lease, for every store: a passive state machine.
//
// Events and the time come in through the methods; calls to make, answers to give and changes to
// tell come out of take_effects(). It owns no thread, reads no clock and speaks to no store, so a
// test or a simulation can drive it through any interleaving in virtual time.
#pragma once

#include <memory_resource>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "kit/few.h"
#include "kit/recycled_memory.h"
#include "leasehold/lease.h"
#include "leasehold/random.h"
#include "leasehold/store.h"

namespace leasehold::engine {

struct AcquireSpec {
  LockName lock;
  OwnerLabel owner;
  Ttl ttl;
  Millis wait;
  Millis store_timeout;
  Mode mode = {};
  Note note = {};
};

struct Grant {
  RequestId request;
  LockName lock;
  TokenNumber token;
  StoreId store;
  Millis ttl;
  BootTime deadline;
  Mode mode = {};
  std::optional<Slot> slot = {};
};

// Calls to make. Each is answered by exactly one *_replied event. Until then `asker` points to the
// request of the call, for a completion that has no room for more than a pointer.
struct SendAcquire {
  AcquireCall call;
  BootTime deadline;
  const RequestId* asker;
};
struct SendRenew {
  std::vector<RenewCall> calls;
  BootTime deadline;
  std::optional<std::size_t> lane;  // renewal_lane(); none: it confirms what a caller waits for
};
struct SendRelease {
  ReleaseCall call;
  BootTime deadline;
  const RequestId* asker;
};
using StoreCall = std::variant<SendAcquire, SendRenew, SendRelease>;
using Calls = kit::Few<StoreCall>;

// Answers to callers who wait, and changes of leases that callers hold.
struct AcquireEnded {
  RequestId request;
  Result<Grant> result;
};
struct ReleaseEnded {
  RequestId request;
  Result<ReleaseOutcome> result;
};
struct LeaseChanged {
  RequestId request;
  LeaseState state;
  BootTime deadline;
};
using Notice = std::variant<AcquireEnded, ReleaseEnded, LeaseChanged>;

struct Effects {
  std::vector<Notice> notices;
  Calls calls;
};

class Engine {
 public:
  // `store`: its address, for errors.
  Engine(bool store_queues, Random& random, std::string store = "")
      : store_queues_(store_queues),
        random_(random),
        jitter_(random.next()),
        store_(std::move(store)) {}

  // What callers want.
  RequestId acquire(BootTime now, AcquireSpec spec);    // answered by one AcquireEnded
  void cancel(BootTime now, const RequestId& request);  // answers who still waits at once
  void release(BootTime now, const RequestId& request, Millis keep_for,
               Millis timeout);                       // answered by one ReleaseEnded
  void drop(BootTime now, const RequestId& request);  // releases, nobody waits for it
  // A lease that is held: no renewal comes out any more, until it is resumed.
  void stop_renewing(const RequestId& request);
  void resume_renewing(BootTime now, const RequestId& request);  // the next one is due at once

  // For a renewal that came out and was not sent yet: true if its lease is no longer to be renewed.
  // It must then not be sent, and counts as answered.
  bool call_off_renewal(const RequestId& request);

  // What the store answers.
  void acquire_replied(BootTime now, const RequestId& request, Result<AcquireReply> reply);
  void renew_replied(BootTime now, std::span<const RequestId> requests,
                     const Result<std::vector<RenewReply>>& replies);
  void release_replied(BootTime now, const RequestId& request, const Result<ReleaseReply>& reply);

  // What the store tells unasked.
  void nudged(BootTime now, const RequestId& request);
  void ended(const RequestId& request);

  // Time passes: everything due by `now` happens.
  void tick(BootTime now);

  // When tick() has something to do next.
  std::optional<BootTime> next_wake() const;

  Effects take_effects() { return std::exchange(effects_, {}); }
  // The same in parts. What `into` had is dropped, and its memory is used for later notices.
  void take_notices(std::vector<Notice>& into) {
    into.clear();
    into.swap(effects_.notices);
  }
  Calls take_calls() { return std::exchange(effects_.calls, {}); }

  // Nothing is on its way to or from the store, and nothing waits to be retried, except leases
  // that are held.
  bool settled() const { return unsettled_ == 0; }

  // Ends the program if something does not hold that must hold between two events. For tests: it
  // looks at everything.
  void check_invariants() const;

 private:
  enum class Phase {
    acquiring,   // asking, or waiting to ask again
    confirming,  // granted, but nobody knows by which call, or little is left: it is renewed first
    holding,     // the caller has the lease, until it releases or drops it
    leaving,     // being withdrawn from the store until that is acknowledged
  };

  struct Acquisition {
    Acquisition(const RequestId& id, AcquireSpec wanted, BootTime now)
        : request(id), spec(std::move(wanted)), started(now), granted_after(now) {}

    const RequestId request;
    AcquireSpec spec;
    Phase phase = Phase::acquiring;

    BootTime started;
    BootTime acquire_sent;
    BootTime granted_after;           // what the store has granted was not granted before that
    std::optional<BootTime> renewed;  // acquiring: the grant that it is asked for was, by a call
                                      // sent then
    int attempts = 0;
    int failures = 0;  // in a row, of whatever is being tried
    bool call_in_flight = false;
    bool answered = false;  // the store said busy or queued at least once
    bool traces = false;    // something of this request may exist at the store
    bool nudged_meanwhile = false;
    std::string ahead;  // who has the lock, for the message
    std::optional<Error> last_error;
    BootTime try_at;      // acquiring, confirming, leaving: when to call again
    BootTime give_up_at;  // acquiring, confirming: when the caller gets its answer

    std::optional<Grant> grant;
    LeaseState state = LeaseState::held;
    BootTime renew_at;
    BootTime renew_sent;
    bool renew_in_flight = false;
    bool renews = true;  // holding: false while the caller has stopped it

    Millis keep_for{0};
    bool caller_waits = false;  // leaving: a ReleaseEnded is owed
    BootTime answer_by;
    bool release_in_flight = false;
    bool release_ambiguous = false;

    std::optional<BootTime> wake;  // as it stands in wakes_
  };

  // Spreads timers; need not be hard to guess, and must not cost a system call each.
  class Jitter final : public Random {
   public:
    explicit Jitter(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() override {  // splitmix64
      std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
      mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
      mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
      return mixed ^ (mixed >> 31);
    }

   private:
    std::uint64_t state_;
  };

  void check(const Acquisition& it) const;
  Acquisition* find(const RequestId& request);
  Acquisition* find_held(const RequestId& request);
  void set_phase(Acquisition& it, Phase phase);
  void forget(Acquisition& it);
  void reschedule(Acquisition& it);
  void set_wake(Acquisition& it, std::optional<BootTime> wake);
  std::optional<BootTime> wake_of(const Acquisition& it) const;
  void on_wake(BootTime now, Acquisition& it);

  static BootTime latest_answer(const Acquisition& it);
  void send_acquire(BootTime now, Acquisition& it);
  void acquire_failed(BootTime now, Acquisition& it, Error error);
  void granted(BootTime now, Acquisition& it, const Granted& granted);
  void wait_on(BootTime now, Acquisition& it, BootTime next_try);
  void give_up(BootTime now, Acquisition& it);
  void end_acquire(BootTime now, Acquisition& it, Error error);

  void confirm(BootTime now, Acquisition& it);
  void confirmed(BootTime now, Acquisition& it);
  static BootTime end_of_grant(BootTime counted_from, const Acquisition& it);
  void hold(Acquisition& it, BootTime counted_from);
  void renewed(BootTime now, Acquisition& it);
  void renewal_failed(BootTime now, Acquisition& it);
  void send_due_renewals(BootTime now);
  void send_renewals(BootTime now, std::span<Acquisition* const> due);
  void change(Acquisition& it, LeaseState state);

  void leave(BootTime now, Acquisition& it);
  void send_release(BootTime now, Acquisition& it);
  void answer_release(Acquisition& it, Result<ReleaseOutcome> result);

  Error unknown(const Acquisition& it, const std::string& what) const;
  Error cut_off(const Acquisition& it) const;
  Error unknown_grant(const Acquisition& it) const;
  Error unknown_release(const Acquisition& it) const;

  const bool store_queues_;
  Random& random_;  // for identities
  Jitter jitter_;
  const std::string store_;
  kit::RecycledMemory memory_;
  std::pmr::unordered_map<RequestId, Acquisition> acquisitions_{&memory_};
  std::pmr::set<std::pair<BootTime, RequestId>> wakes_{&memory_};
  std::size_t unsettled_ = 0;
  Effects effects_;
};

}  // namespace leasehold::engine
