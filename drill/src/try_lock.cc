#include "leasehold/drill/try_lock.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <unordered_map>

namespace leasehold::drill {
namespace {

constexpr std::int64_t kMayEndAnyTime = std::numeric_limits<std::int64_t>::min();
constexpr std::size_t kSlots = 64;

struct Attempt {
  bool acquires = false;
  Kind outcome = Kind::unknown;
  RequestRef request = 0;
  std::size_t invoked = 0;
  std::size_t answered = 0;
};

// One way in which everything so far can have happened.
struct State {
  std::uint64_t in_effect = 0;  // slots of operations under way that took effect already
  RequestRef holder = 0;

  auto operator<=>(const State&) const = default;
};

class Search {
 public:
  Search(const History& history, LockRef lock, const TryLockLimits& limits)
      : history_(history), lock_(lock), limits_(limits) {}

  TryLockVerdict run() {
    read();
    verdict_.operations = attempts_.size();
    for (const Event& event : events_) {
      const bool go_on = event.begins ? begin(event.attempt) : end(event.attempt, event.time);
      if (!go_on) return verdict_;
    }
    verdict_.answer = Answer::yes;
    return verdict_;
  }

 private:
  struct Event {
    std::size_t record;
    std::int64_t time;
    std::size_t attempt;
    bool begins;
  };

  // ---- reading -----------------------------------------------------------------------------

  void read() {
    std::unordered_map<std::uint64_t, std::size_t> open;
    std::unordered_map<RequestRef, std::size_t> first_accept;
    const auto& records = history_.records();
    for (std::size_t at = 0; at < records.size(); ++at) {
      const Record& record = records[at];
      if (record.lock != lock_) continue;
      if (record.kind == Kind::accept) first_accept.try_emplace(record.request, at);
      const bool told = record.kind == Kind::ok && record.deadline != 0;
      if (told && record.operation != Operation::release) {
        auto& deadline = deadlines_.try_emplace(record.request, record.deadline).first->second;
        deadline = std::max(deadline, record.deadline);
      }
      const bool acquires = record.operation == Operation::acquire;
      if (!acquires && record.operation != Operation::release) continue;
      const std::uint64_t key = (std::uint64_t{record.request} << 1) | (acquires ? 1 : 0);
      if (record.kind == Kind::invoke) {
        open[key] = attempts_.size();
        attempts_.push_back({acquires, Kind::unknown, record.request, at, at});
      } else if (record.kind == Kind::ok || record.kind == Kind::fail) {
        const auto found = open.find(key);
        if (found == open.end()) continue;
        attempts_[found->second].outcome = record.kind;
        attempts_[found->second].answered = at;
        open.erase(found);
      }
    }
    for (Attempt& each : attempts_) {
      const auto accepted = first_accept.find(each.request);
      if (!each.acquires || each.outcome != Kind::unknown || accepted == first_accept.end()) {
        continue;
      }
      // Of what was accepted before it was asked for, this is not the answer.
      if (accepted->second < each.invoked) continue;
      each.outcome = Kind::ok;
      each.answered = accepted->second;
    }
    for (std::size_t i = 0; i < attempts_.size(); ++i) {
      const Attempt& each = attempts_[i];
      events_.push_back({each.invoked, records[each.invoked].time, i, true});
      if (each.outcome == Kind::unknown) continue;
      events_.push_back({each.answered, records[each.answered].time, i, false});
    }
    std::sort(events_.begin(), events_.end(),
              [](const Event& one, const Event& other) { return one.record < other.record; });
  }

  // ---- searching ---------------------------------------------------------------------------

  bool begin(std::size_t attempt) {
    if (definite_ == 0) in_window_ = 0;
    if (++in_window_ > limits_.operations_in_a_window) {
      return give_up("more than " + std::to_string(limits_.operations_in_a_window) +
                     " operations without a quiet moment");
    }
    const bool unknown = attempts_[attempt].outcome == Kind::unknown;
    if (unknown && ++unknown_ > limits_.unknown_at_once) {
      return give_up("more than " + std::to_string(limits_.unknown_at_once) +
                     " operations with an unknown outcome");
    }
    const int slot = std::countr_one(used_);
    if (slot == static_cast<int>(kSlots)) {
      return give_up("more than 64 operations at once");
    }
    if (!unknown) ++definite_;
    used_ |= bit(slot);
    slots_[static_cast<std::size_t>(slot)] = attempt;
    return true;
  }

  bool end(std::size_t attempt, std::int64_t now) {
    const int slot = slot_of(attempt);
    std::vector<State> todo = std::move(states_);
    std::vector<State> seen = todo;
    std::vector<State> next;
    std::sort(seen.begin(), seen.end());
    while (!todo.empty()) {
      const State state = todo.back();
      todo.pop_back();
      if ((state.in_effect & bit(slot)) != 0) {
        next.push_back({state.in_effect & ~bit(slot), state.holder});
        continue;
      }
      for (std::uint64_t left = used_ & ~state.in_effect; left != 0; left &= left - 1) {
        const int each = std::countr_zero(left);
        const auto after = apply(state, attempts_[slots_[static_cast<std::size_t>(each)]], now);
        if (!after) continue;
        const State reached{state.in_effect | bit(each), *after};
        const auto place = std::lower_bound(seen.begin(), seen.end(), reached);
        if (place != seen.end() && *place == reached) continue;
        if (seen.size() >= limits_.states) return give_up("too many ways to explain it");
        seen.insert(place, reached);
        todo.push_back(reached);
      }
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    states_ = std::move(next);
    used_ &= ~bit(slot);
    --definite_;
    if (!states_.empty()) return true;
    verdict_.answer = Answer::no;
    verdict_.sentence = "no order of the operations explains this answer";
    verdict_.records = {attempts_[attempt].invoked, attempts_[attempt].answered};
    return false;
  }

  // The holder afterwards, or nothing if it cannot have happened in this state by `now`.
  std::optional<RequestRef> apply(const State& state, const Attempt& attempt,
                                  std::int64_t now) const {
    const bool own = state.holder == attempt.request;
    const bool free = state.holder == 0 || now > deadline(state.holder);
    if (attempt.acquires) {
      if (attempt.outcome != Kind::fail) {
        return free && !own ? std::optional(attempt.request) : std::nullopt;
      }
      return state.holder != 0 && !own ? std::optional(state.holder) : std::nullopt;
    }
    if (attempt.outcome != Kind::fail) return own ? std::optional(RequestRef{0}) : std::nullopt;
    if (own) return free ? std::optional(RequestRef{0}) : std::nullopt;
    return state.holder;
  }

  std::int64_t deadline(RequestRef request) const {
    const auto found = deadlines_.find(request);
    return found == deadlines_.end() ? kMayEndAnyTime : found->second;
  }

  bool give_up(std::string why) {
    verdict_.answer = Answer::unknown;
    verdict_.sentence = std::move(why);
    return false;
  }

  int slot_of(std::size_t attempt) const {
    for (std::uint64_t left = used_; left != 0; left &= left - 1) {
      const int slot = std::countr_zero(left);
      if (slots_[static_cast<std::size_t>(slot)] == attempt) return slot;
    }
    return -1;  // every answered attempt has begun
  }

  static std::uint64_t bit(int slot) { return std::uint64_t{1} << slot; }

  const History& history_;
  const LockRef lock_;
  const TryLockLimits& limits_;
  TryLockVerdict verdict_;
  std::vector<Attempt> attempts_;
  std::vector<Event> events_;
  std::unordered_map<RequestRef, std::int64_t> deadlines_;  // the last one that was told

  std::vector<State> states_{State{}};
  std::uint64_t used_ = 0;
  std::size_t slots_[kSlots] = {};
  std::size_t in_window_ = 0;
  std::size_t definite_ = 0;
  std::size_t unknown_ = 0;
};

}  // namespace

std::string_view to_string(Answer answer) {
  switch (answer) {
    case Answer::yes:
      return "yes";
    case Answer::no:
      return "no";
    case Answer::unknown:
      break;
  }
  return "unknown";
}

TryLockVerdict check_try_lock(History& history, LockRef lock, const TryLockLimits& limits) {
  history.sort();
  return Search(history, lock, limits).run();
}

}  // namespace leasehold::drill
