// A lock store as the contract of leasehold::Store wants it, in virtual time. It survives its
// crashes: grants are durable, the queue is not. Numbers are reserved on disk, some at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "chance.h"
#include "leasehold/id.h"
#include "leasehold/mode.h"
#include "mutation.h"
#include "recorder.h"
#include "settings.h"

namespace leasehold::simulation {

using drill::LockRef;
using drill::RequestRef;

struct AcquireOrder {
  std::uint32_t lock = 0;
  Mode mode = {};
  RequestRef request = 0;
  std::uint16_t client = 0;
  Time ttl = 0;
  bool queue = false;
  bool late = false;  // its caller has been answered already, or has gone
};
struct AcquireAnswer {
  enum class Kind : std::uint8_t { granted, queued, busy } kind = Kind::busy;
  std::int64_t token = 0;
  Time recheck_after = 0;
  bool fresh = false;  // granted by this very call
  std::optional<Slot> slot = {};
};

// What the store tells unasked.
struct Told {
  bool nudge = false;  // else: the grant ended
  RequestRef request = 0;
  std::uint16_t client = 0;
};

// What is still there when everybody has left.
struct Leftover {
  bool waits = false;  // else: holds
  RequestRef request = 0;
  std::uint32_t lock = 0;
};

class StoreModel {
 public:
  StoreModel(Recorder& recorder, Chance& chance, const Settings& settings, Mutation mutation);

  const StoreId& id() const { return id_; }
  drill::StoreRef ref() const { return ref_; }

  AcquireAnswer acquire(Time now, const AcquireOrder& order);
  bool renew(Time now, std::uint32_t lock, RequestRef request, Time ttl);
  bool release(Time now, std::uint32_t lock, RequestRef request, Time keep_for);

  // The operator ends the grant that he sees; false: there is none.
  bool force_release(Time now, std::uint32_t lock);

  void crash(Time now);
  // It has written that it reserves numbers, but nobody knows whether that is on disk.
  void crash_in_sync(Time now);
  void lose_power(Time now);
  void set_wall_clock(Time step) { wall_offset_ += step; }

  // The token of this request's living grant; 0: it has none.
  std::int64_t token_of(Time now, std::uint32_t lock, RequestRef request) const;

  // Of a release that compares first: locks to be deleted a little later.
  std::vector<std::uint32_t> take_deferred() { return std::exchange(deferred_, {}); }
  void delete_whatever(Time now, std::uint32_t lock);

  std::vector<Told>& told() { return told_; }

  // Grants that were made while another one of the lock lived.
  std::uint64_t granted_beside() const { return granted_beside_; }

  // Grants and places in the queue that somebody who lives should have given back.
  std::vector<Leftover> leftovers(Time now) const;

 private:
  static constexpr std::int64_t kReserve = 4;
  static constexpr Time kPatience = 3 * kSecond;  // for a waiter that does not ask again

  struct Waiter {
    Mode mode;
    RequestRef request;
    std::uint16_t client;
    bool late;
    Time asked;
  };
  struct Holder {
    Mode mode;
    std::optional<Slot> slot;
    RequestRef request;
    std::uint16_t client;
    bool late;
    std::int64_t token;
    Time expires;
    bool kept = false;
  };
  struct Row {
    std::vector<Holder> holders;  // by the order of their grants
    std::vector<Waiter> queue;
    RequestRef asker = 0;  // of a release that has compared
  };
  // The numbers of all locks come from one.
  struct Counter {
    std::int64_t last = 0;
    std::int64_t ceiling = 0;   // may be granted
    std::int64_t reserved = 0;  // can be seen by who comes next
    std::int64_t on_disk = 0;
  };

  Time clock(Time now) const {
    return mutation_ == Mutation::wall_clock_expiry ? now + wall_offset_ : now;
  }
  bool alive(const Holder& holder, Time now) const {
    if (mutation_ == Mutation::alive_at_expiry) return clock(now) <= holder.expires;
    return clock(now) < holder.expires;
  }
  static Holder* holder_of(Row& row, RequestRef request);
  Holder* own_grant(Row& row, RequestRef request, Mutation whoever);
  bool fits_beside_holders(const Row& row, Mode mode) const;
  bool fits_beside_queue(const Row& row, Mode mode, RequestRef request) const;
  std::optional<Slot> lowest_free_slot(const Row& row, Mode mode) const;
  void notice_expiry(Time now, std::uint32_t lock);
  void pass_over_the_dead(Time now, Row& row);
  AcquireAnswer grant(Time now, Row& row, const AcquireOrder& order, drill::Operation cause);
  AcquireAnswer wait(Time now, Row& row, const AcquireOrder& order);
  void leave_queue(Time now, Row& row, RequestRef request);
  void forget_queue(Time now, Row& row);
  void end_grant(Time now, Row& row, const Holder& holder, RequestRef asker,
                 drill::Operation cause);
  void nudge_first(Row& row);
  std::int64_t next_token();
  void raise_ceiling();
  void log(Time now, drill::Kind kind, drill::Operation cause, const Row& row, const Holder& holder,
           RequestRef asker, Time deadline = 0);
  void log(Time now, drill::Kind kind, const Row& row, const Waiter& waiter);
  std::uint32_t index(const Row& row) const {
    return static_cast<std::uint32_t>(&row - rows_.data());
  }

  Recorder& recorder_;
  Chance& chance_;
  const Settings& settings_;
  const Mutation mutation_;
  const StoreId id_;
  const drill::StoreRef ref_;
  const drill::ProcessRef process_;
  std::vector<LockRef> lock_refs_;
  std::vector<Row> rows_;
  Counter counter_;
  std::uint64_t granted_beside_ = 0;
  Time wall_offset_ = 0;
  std::vector<Told> told_;
  std::vector<std::uint32_t> deferred_;
};

// The name of the lock with this number, and of the resource behind it.
std::string name_of_lock(std::uint32_t lock);

}  // namespace leasehold::simulation
