#include "leasehold/drill/checker.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace leasehold::drill {
namespace {

using Position = std::uint32_t;

struct Granted {
  std::int64_t token;
  RequestRef request;
  Position record;
};

// One lock of one store.
struct Counter {
  StoreRef store = 0;
  std::vector<Granted> grants;  // by token
  bool hopeless = false;        // so many went back that they are no longer looked up

  struct Epoch {
    std::uint16_t epoch;
    std::int64_t highest;
    Position record;
  };
  std::vector<Epoch> epochs;  // by epoch

  bool held = false;
  bool kept = false;
  RequestRef holder = 0;
  std::int64_t token = 0;
  std::int64_t deadline = 0;
  Position granted_by = 0;
};

struct Belief {
  RequestRef request;
  ProcessRef process;
  std::int64_t deadline;
  Position record;
};

struct Waiter {
  RequestRef request;
  ProcessRef process;
};

struct Lock {
  bool has_store_log = false;
  std::vector<Counter> counters;
  std::vector<Belief> beliefs;

  std::int64_t acknowledged = 0;  // highest token that a client was told
  StoreRef acknowledged_by = 0;
  Position acknowledged_in = 0;

  std::vector<Waiter> waiters;
  std::int64_t wanted_since = 0;
  std::int64_t last_grant = -1;
  std::int64_t idle = 0;  // since it was free last, or the last fault ended
  std::int64_t idle_counted_to = 0;
};

// One resource.
struct Place {
  StoreRef store = 0;
  std::int64_t mark = 0;
  RequestRef holder = 0;
  Position marked_by = 0;
  std::uint32_t sequence = 0;
  std::uint64_t value = 0;
  Position written_by = 0;
  bool written = false;
};

struct Request {
  std::int64_t deadline = 0;   // the latest that the store gave
  std::int64_t told = 0;       // the token that its client was told
  bool released = false;       // its own release ended a grant of it
  bool released_told = false;  // and that was the one that its client was told, if any
  std::int64_t floor = 0;      // highest token told to anybody before this one was asked for
  Position floor_record = 0;
};

class Checker {
 public:
  Checker(const History& history, const CheckOptions& options)
      : history_(history),
        options_(options),
        locks_(history.lock_count()),
        requests_(history.request_count()) {}

  Report run() {
    const auto& records = history_.records();
    for (const Record& record : records) {
      if (record.kind == Kind::grant) locks_[record.lock].has_store_log = true;
    }
    for (at_ = 0; at_ < records.size(); ++at_) judge(records[at_]);
    report_.store_log = report_.grants > 0 && !told_without_store_log_;
    judge_acknowledged_writes();
    judge_open_waits();
    return std::move(report_);
  }

 private:
  void judge(const Record& record) {
    switch (record.kind) {
      case Kind::invoke:
        return invoked(record);
      case Kind::ok:
        return done(record);
      case Kind::fail:
      case Kind::unknown:
        return not_done(record);
      case Kind::grant:
        return granted(record);
      case Kind::renew:
        return renewed(record);
      case Kind::expire:
        return expired(record);
      case Kind::release:
        return released(record);
      case Kind::accept:
        return accepted(record);
      case Kind::refuse:
        return refused(record);
      case Kind::fault:
        return fault_began(record);
      case Kind::heal:
        return fault_ended(record);
    }
  }

  void violate(Check check, std::string sentence, std::vector<std::size_t> records) {
    std::uint64_t& count = report_.counts[static_cast<std::size_t>(check)];
    if (count++ >= options_.violations_kept_per_check) return;
    records.push_back(at_);
    std::sort(records.begin(), records.end());
    records.erase(std::unique(records.begin(), records.end()), records.end());
    report_.violations.push_back({check, std::move(sentence), std::move(records)});
  }

  // ---- the store ---------------------------------------------------------------------------

  Counter& counter(const Record& record) {
    auto& counters = locks_[record.lock].counters;
    for (Counter& each : counters) {
      if (each.store == record.store) return each;
    }
    counters.emplace_back().store = record.store;
    return counters.back();
  }

  void granted(const Record& record) {
    Counter& it = counter(record);
    ++report_.grants;
    measure_grant(record);
    if (record.operation != Operation::acquire) {
      violate(Check::I5, "a grant was made by something else than an acquire", {});
    }
    judge_token(record, it);
    if (it.held && record.time < it.deadline) {
      violate(Check::I6, "the lock was granted although the grant before had not ended",
              {it.granted_by});
    }
    remember_grant(record, it);
    requests_[record.request].deadline = record.deadline;
    it.held = true;
    it.kept = false;
    it.holder = record.request;
    it.token = record.token;
    it.deadline = record.deadline;
    it.granted_by = at();
  }

  // Within an epoch tokens increase; a newer epoch begins above all older ones. An older epoch that
  // goes on is counted, and judged by itself.
  void judge_token(const Record& record, Counter& it) {
    if (!it.epochs.empty() && record.epoch < it.epochs.back().epoch) ++report_.old_epoch_grants;
    auto place = it.epochs.end();
    while (place != it.epochs.begin() && std::prev(place)->epoch >= record.epoch) --place;
    const bool known = place != it.epochs.end() && place->epoch == record.epoch;
    for (auto before = it.epochs.begin(); before != place + (known ? 1 : 0); ++before) {
      if (record.token > before->highest) continue;
      violate(Check::I1, "the token is not larger than that of an earlier grant", {before->record});
      break;
    }
    if (!known) {
      it.epochs.insert(place, {record.epoch, record.token, at()});
    } else if (record.token > place->highest) {
      *place = {record.epoch, record.token, at()};
    }
  }

  void remember_grant(const Record& record, Counter& it) {
    constexpr std::uint64_t hopeless = 10'000;
    if (it.hopeless) return;
    auto place = it.grants.end();
    while (place != it.grants.begin() && std::prev(place)->token > record.token) --place;
    if (place != it.grants.begin() && std::prev(place)->token == record.token &&
        std::prev(place)->request != record.request) {
      violate(Check::I3, "the same token was granted twice", {std::prev(place)->record});
    }
    it.grants.insert(place, {record.token, record.request, at()});
    it.hopeless = report_.count(Check::I1) > hopeless;
  }

  // Empty if it is this request's living grant, else what is wrong.
  std::string_view own_living_grant(const Record& record, const Counter& it) {
    if (!it.held) return "there was no grant";
    if (it.holder != record.request) return "the grant was another request's";
    if (it.token != record.token) return "the grant was another one of this request";
    return {};
  }

  static std::vector<std::size_t> grant_of(const Counter& it) {
    if (it.token == 0) return {};
    return {it.granted_by};
  }

  void renewed(const Record& record) {
    Counter& it = counter(record);
    std::string_view wrong = own_living_grant(record, it);
    if (wrong.empty() && it.kept) wrong = "the grant had been released";
    if (wrong.empty() && record.time >= it.deadline) wrong = "the grant had ended";
    if (wrong.empty() && record.operation != Operation::renew) wrong = "no renewal asked for it";
    if (!wrong.empty()) {
      violate(Check::I5, "a grant was prolonged although " + std::string(wrong), grant_of(it));
    }
    count_idle(locks_[record.lock], record.time);
    it.deadline = record.deadline;
    Request& request = requests_[record.request];
    request.deadline = std::max(request.deadline, record.deadline);
  }

  void expired(const Record& record) {
    Counter& it = counter(record);
    if (!it.held || it.token != record.token) return;
    if (record.time < it.deadline) {
      violate(Check::I6, "the store ended a grant before its time", {it.granted_by});
    }
    count_idle(locks_[record.lock], record.time);
    it.held = false;
  }

  void released(const Record& record) {
    Counter& it = counter(record);
    const std::string_view wrong = own_living_grant(record, it);
    if (!wrong.empty()) {
      violate(Check::I5, "a grant was ended although " + std::string(wrong), grant_of(it));
    }
    if (record.operation == Operation::release) {
      Request& request = requests_[record.request];
      request.released = true;
      if (request.told == 0 || request.told == record.token) request.released_told = true;
    }
    count_idle(locks_[record.lock], record.time);
    it.kept = record.deadline > record.time;
    if (it.kept) {
      it.deadline = record.deadline;
    } else {
      it.held = false;
    }
  }

  // ---- the resource ------------------------------------------------------------------------

  Place& place(const Record& record) {
    const std::uint64_t key = (std::uint64_t{record.process} << 32) | record.lock;
    if (key != last_place_key_ || last_place_ == nullptr) {
      last_place_key_ = key;
      last_place_ = &places_[key];
    }
    return *last_place_;
  }

  void accepted(const Record& record) {
    Place& it = place(record);
    ++report_.accepted;
    if (record.token == 0) {
      judge_claim(record, it);
    } else {
      judge_mark(record, it);
      judge_lineage(record, it);
    }
    if (record.operation == Operation::write) {
      judge_write(record, it);
    } else if (it.written && record.value != it.value) {
      violate(Check::I4, "a read did not return the last accepted write", {it.written_by});
    }
    if (record.token > it.mark) {
      it.store = record.store;
      it.mark = record.token;
      it.holder = record.request;
      it.sequence = 0;
      it.marked_by = at();
    }
    if (record.token == it.mark) it.sequence = std::max(it.sequence, record.sequence);
  }

  // Without tokens the last to enter is let in, and nobody else.
  void judge_claim(const Record& record, Place& it) {
    const bool entering = record.operation == Operation::read;
    if (!entering && it.holder != 0 && record.request != it.holder) {
      violate(Check::I2, "a write was accepted although another request had entered since",
              {it.marked_by});
    }
    if (!entering && it.holder != 0) return;
    it.holder = record.request;
    it.marked_by = at();
  }

  void judge_mark(const Record& record, const Place& it) {
    if (record.token < it.mark) {
      violate(Check::I2, "a token below the mark was accepted", {it.marked_by});
    } else if (record.token == it.mark && record.request != it.holder) {
      violate(Check::I2, "the mark's token was accepted from another request", {it.marked_by});
    }
  }

  void judge_lineage(const Record& record, const Place& it) {
    if (it.store != 0 && record.store != it.store) {
      violate(Check::I3, "a token of another store was accepted", {it.marked_by});
    }
    const Counter& granting = counter(record);
    if (granting.hopeless) return;
    const Granted* found = find_grant(granting, record.token, record.request);
    if (found == nullptr) {
      violate(Check::I3, "a token was accepted that was never granted to this request", {});
    }
  }

  static const Granted* find_grant(const Counter& it, std::int64_t token, RequestRef request) {
    auto found = std::lower_bound(
        it.grants.begin(), it.grants.end(), token,
        [](const Granted& granted, std::int64_t wanted) { return granted.token < wanted; });
    for (; found != it.grants.end() && found->token == token; ++found) {
      if (found->request == request) return &*found;
    }
    return nullptr;
  }

  void judge_write(const Record& record, Place& it) {
    written_.push_back(record.value);
    const bool repeated = it.written && record.value == it.value;
    if (repeated) return;
    if (it.written && record.base != it.value) {
      violate(Check::I4, "a write was accepted over one that its writer had not read",
              {it.written_by});
    }
    it.value = record.value;
    it.written = true;
    it.written_by = at();
  }

  void refused(const Record& record) {
    ++report_.refused;
    const Place& it = place(record);
    const bool stale = record.token < it.mark;
    const bool foreign = it.mark != 0 && (record.store != it.store ||
                                          (record.token == it.mark && record.request != it.holder));
    const bool late = record.token != 0 && record.token == it.mark &&
                      record.operation == Operation::write && record.sequence <= it.sequence;
    const bool taken_over = record.token == 0 && record.request != it.holder;
    if (stale || foreign || late || taken_over) return;
    violate(Check::F1, "a token that is neither stale nor foreign was refused",
            it.mark != 0 ? std::vector<std::size_t>{it.marked_by} : std::vector<std::size_t>{});
  }

  // ---- the clients -------------------------------------------------------------------------

  void invoked(const Record& record) {
    Lock& lock = locks_[record.lock];
    if (record.operation == Operation::release) return end_belief(lock, record.request);
    if (record.operation != Operation::acquire) return;
    requests_[record.request].floor = lock.acknowledged;
    requests_[record.request].floor_record = lock.acknowledged_in;
    count_idle(lock, record.time);
    if (lock.waiters.empty()) lock.wanted_since = record.time;
    lock.waiters.push_back({record.request, record.process});
  }

  void done(const Record& record) {
    Lock& lock = locks_[record.lock];
    switch (record.operation) {
      case Operation::acquire:
        count_idle(lock, record.time);
        stop_waiting(lock, record.request);
        told_grant(record, lock);
        return believe(record, lock);
      case Operation::renew:
        for (Belief& each : lock.beliefs) {
          if (each.request == record.request) each.deadline = record.deadline;
        }
        return judge_deadline(record, lock);
      case Operation::release:
        return judge_release(record, lock, true);
      case Operation::write:
        acknowledged_writes_.push_back({record.value, at()});
        return;
      default:
        return;
    }
  }

  void not_done(const Record& record) {
    Lock& lock = locks_[record.lock];
    if (record.operation == Operation::renew) end_belief(lock, record.request);
    if (record.operation == Operation::release && record.kind == Kind::fail) {
      judge_release(record, lock, false);
    }
    if (record.operation != Operation::acquire) return;
    count_idle(lock, record.time);
    stop_waiting(lock, record.request);
  }

  void told_grant(const Record& record, Lock& lock) {
    Request& request = requests_[record.request];
    request.told = record.token;
    const bool comparable = lock.acknowledged_by == 0 || lock.acknowledged_by == record.store;
    const bool has_token = record.token != 0;
    if (has_token && comparable && record.token <= request.floor) {
      violate(Check::I1, "the token is not larger than one that was told before this was asked for",
              {request.floor_record});
    }
    if (record.token > lock.acknowledged || !comparable) {
      lock.acknowledged = record.token;
      lock.acknowledged_by = record.store;
      lock.acknowledged_in = at();
    }
    if (!lock.has_store_log) {
      told_without_store_log_ = true;
      ++report_.grants;
      if (has_token) remember_grant(record, counter(record));
      measure_grant(record);
      return;
    }
    const Counter& granting = counter(record);
    if (!granting.hopeless && find_grant(granting, record.token, record.request) == nullptr) {
      violate(Check::I3, "a client was told a token that was not granted to its request", {});
    }
    judge_deadline(record, lock);
  }

  void judge_deadline(const Record& record, const Lock& lock) {
    if (!lock.has_store_log || record.deadline <= requests_[record.request].deadline) return;
    violate(Check::H1, "the holder's deadline is later than the store's", {});
  }

  void judge_release(const Record& record, const Lock& lock, bool told) {
    const Request& request = requests_[record.request];
    // A late copy of the acquire may be granted after its own grant has ended, and be released too.
    const bool was = told ? request.released : request.released_told;
    if (!lock.has_store_log || told == was) return;
    violate(Check::R1,
            told ? "a client was told that it released what the store had ended otherwise"
                 : "a client was told that its release came too late, but it ended the grant",
            {});
  }

  void believe(const Record& record, Lock& lock) {
    for (const Belief& other : lock.beliefs) {
      ++report_.overlaps.count;
      if (other.deadline > record.time) ++report_.overlaps.before_deadline;
      if (report_.overlaps.first.empty()) report_.overlaps.first = {other.record, at_};
    }
    lock.beliefs.push_back({record.request, record.process, record.deadline, at()});
  }

  static void end_belief(Lock& lock, RequestRef request) {
    std::erase_if(lock.beliefs, [&](const Belief& each) { return each.request == request; });
  }

  static void stop_waiting(Lock& lock, RequestRef request) {
    std::erase_if(lock.waiters, [&](const Waiter& each) { return each.request == request; });
  }

  // ---- faults and liveness -----------------------------------------------------------------

  void fault_began(const Record& record) {
    if (faults_++ == 0) {
      for (Lock& lock : locks_) {
        count_idle(lock, record.time);
        lock.idle = 0;
      }
    }
    if (record.operation != Operation::crash) return;
    for (Lock& lock : locks_) {
      std::erase_if(lock.beliefs,
                    [&](const Belief& each) { return each.process == record.process; });
      std::erase_if(lock.waiters,
                    [&](const Waiter& each) { return each.process == record.process; });
    }
  }

  void fault_ended(const Record& record) {
    if (faults_ > 0) --faults_;
    if (faults_ == 0) calm_since_ = record.time;
  }

  void measure_grant(const Record& record) {
    Lock& lock = locks_[record.lock];
    count_idle(lock, record.time);
    lock.idle = 0;
    const bool first_since_fault = lock.last_grant < calm_since_;
    const bool wanted_at_its_end = !lock.waiters.empty() && lock.wanted_since <= calm_since_;
    if (faults_ == 0 && calm_since_ > 0 && first_since_fault && wanted_at_its_end) {
      report_.liveness.longest_after_fault =
          std::max(report_.liveness.longest_after_fault, record.time - calm_since_);
    }
    lock.last_grant = record.time;
  }

  // To be called before anything that matters changes: adds the time in which the lock was wanted,
  // free, and no fault lasted.
  void count_idle(Lock& lock, std::int64_t now) {
    const std::int64_t since = std::exchange(lock.idle_counted_to, now);
    if (faults_ > 0 || lock.waiters.empty() || !lock.has_store_log) return;
    std::int64_t free_since = 0;
    for (const Counter& each : lock.counters) {
      if (each.held) free_since = std::max(free_since, each.deadline);
    }
    lock.idle += std::max<std::int64_t>(0, now - std::max({since, free_since, calm_since_}));
    if (lock.idle <= report_.liveness.longest_idle) return;
    report_.liveness.longest_idle = lock.idle;
    report_.liveness.idle_until = at_;
  }

  void judge_open_waits() {
    if (history_.records().empty()) return;
    at_ = history_.records().size() - 1;
    for (Lock& lock : locks_) count_idle(lock, history_.records().back().time);
  }

  void judge_acknowledged_writes() {
    std::sort(written_.begin(), written_.end());
    for (const auto& [value, record] : acknowledged_writes_) {
      if (std::binary_search(written_.begin(), written_.end(), value)) continue;
      at_ = record;
      violate(Check::I4, "a client was told that its write was done, but none accepted it", {});
    }
  }

  Position at() const { return static_cast<Position>(at_); }

  struct Acknowledged {
    std::uint64_t value;
    Position record;
  };

  const History& history_;
  const CheckOptions& options_;
  Report report_;
  std::size_t at_ = 0;
  std::vector<Lock> locks_;
  std::vector<Request> requests_;
  std::unordered_map<std::uint64_t, Place> places_;
  std::uint64_t last_place_key_ = 0;
  Place* last_place_ = nullptr;
  std::vector<std::uint64_t> written_;
  std::vector<Acknowledged> acknowledged_writes_;
  bool told_without_store_log_ = false;
  int faults_ = 0;
  std::int64_t calm_since_ = 0;
};

}  // namespace

std::string_view to_string(Check check) {
  constexpr std::string_view names[kChecks] = {"I1", "I2", "I3", "I4", "I5",
                                               "I6", "H1", "F1", "R1"};
  return names[static_cast<std::size_t>(check)];
}

bool Report::judged(Check check) const {
  switch (check) {
    case Check::I5:
    case Check::I6:
    case Check::H1:
    case Check::R1:
      return store_log || count(check) > 0;
    case Check::I1:
    case Check::I2:
    case Check::I3:
    case Check::I4:
    case Check::F1:
      return true;
  }
  return true;
}

Report check(History& history, const CheckOptions& options) {
  history.sort();
  return Checker(history, options).run();
}

std::string to_text(const Report& report, const History& history) {
  std::string text;
  for (const Violation& violation : report.violations) {
    text += std::string(to_string(violation.check)) + ": " + violation.sentence + "\n";
    for (const std::size_t at : violation.records) text += "  " + describe(history, at) + "\n";
  }
  const auto seconds = [](std::int64_t nanoseconds) {
    return std::to_string(static_cast<double>(nanoseconds) / 1e9) + " s";
  };
  text += std::to_string(report.grants) + " grants, " + std::to_string(report.accepted) +
          " accepted, " + std::to_string(report.refused) + " refused\n";
  for (std::size_t i = 0; i < kChecks; ++i) {
    const auto check = static_cast<Check>(i);
    if (!report.judged(check)) {
      text += std::string(to_string(check)) + ": not judged, there is no log of the store\n";
    }
    if (report.counts[i] == 0) continue;
    text +=
        std::string(to_string(check)) + ": " + std::to_string(report.counts[i]) + " violations\n";
  }
  text += "D1: " + std::to_string(report.overlaps.count) + " overlaps of beliefs, " +
          std::to_string(report.overlaps.before_deadline) + " before the deadline\n";
  text += "D2: " + std::to_string(report.old_epoch_grants) + " grants of an old epoch\n";
  text += "L1: idle at most " + seconds(report.liveness.longest_idle) + ", after a fault at most " +
          seconds(report.liveness.longest_after_fault) + "\n";
  return text;
}

}  // namespace leasehold::drill
