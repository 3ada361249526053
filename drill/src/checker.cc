#include "leasehold/drill/checker.h"

#include <algorithm>
#include <functional>
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

// A claim to a lock in some mode.
struct Claim {
  std::int16_t mode;
  std::uint16_t slot;

  explicit Claim(const Record& record) : mode(record.mode), slot(record.slot) {}
  bool is_shared() const { return mode == Mode::shared().code(); }
  bool is_exclusive() const { return mode == 0; }
  bool is_permit() const { return mode > 0; }
  // Of how many; of the others there is one.
  std::size_t permits() const { return is_permit() ? static_cast<std::size_t>(mode) : 1; }

  // Both may be held at the same time, if there are permits enough.
  bool fits_beside(const Claim& other) const {
    if (is_permit() && other.is_permit()) return slot == 0 || slot != other.slot;
    return is_shared() && other.is_shared();
  }
};

// A grant that has not ended.
struct Living {
  Claim claim;
  RequestRef request;
  std::int64_t token;
  std::int64_t deadline;
  Position granted_by;
  bool kept = false;
};

// A request with a place in the queue.
struct Queued {
  Claim claim;
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

  std::vector<Living> living;  // by the order of their grants
  std::vector<Queued> queue;
  std::int64_t last_token = 0;
  Position last_grant = 0;
};

struct Belief {
  Claim claim;
  RequestRef request;
  ProcessRef process;
  std::int64_t deadline;
  Position record;
};

struct Waiter {
  Claim claim;
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

// The highest that has entered.
struct Entered {
  std::int64_t token = 0;
  RequestRef request = 0;
  Position record = 0;

  bool refuses(const Record& entry) const { return entry.token < token || is_another(entry); }
  // The same number, but somebody else's.
  bool is_another(const Record& entry) const {
    return token != 0 && entry.token == token && entry.request != request;
  }
};

// What a fence has swept of one store.
struct Floor {
  ProcessRef fence = 0;
  StoreRef store = 0;
  std::int64_t token = 0;
  Position record = 0;
};

// One resource.
struct Place {
  StoreRef store = 0;
  Entered writer;
  Entered reader;
  Floor floor;  // of a mark that readers made anew: who wrote before may have been swept
  std::uint32_t sequence = 0;
  std::uint64_t value = 0;
  Position written_by = 0;
  bool written = false;

  bool has_mark() const { return writer.token != 0 || reader.token != 0; }
  std::int64_t highest() const { return std::max(writer.token, reader.token); }
  Position marked_by() const { return writer.token != 0 ? writer.record : reader.record; }
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
      case Kind::queue:
        return queued(record);
      case Kind::leave:
        return left(record);
      case Kind::sweep:
        return swept(record);
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
    std::erase_if(it.living, [&](const Living& each) { return each.deadline <= record.time; });
    const Claim claim(record);
    judge_company(claim, it);
    judge_turn(claim, record.request, it);
    remember_grant(record, it);
    requests_[record.request].deadline = record.deadline;
    it.living.push_back({claim, record.request, record.token, record.deadline, at()});
    it.last_token = record.token;
    it.last_grant = at();
  }

  void judge_company(const Claim& claim, const Counter& it) {
    for (const Living& other : it.living) {
      if (claim.fits_beside(other.claim)) continue;
      if (claim.is_exclusive() && other.claim.is_exclusive()) {
        violate(Check::I6, "the lock was granted although the grant before had not ended",
                {other.granted_by});
      } else if (claim.is_permit() && other.claim.is_permit()) {
        violate(Check::I7, "a slot was given although the grant that had it had not ended",
                {other.granted_by});
      } else {
        violate(Check::I7, "the lock was granted beside a grant that excludes it",
                {other.granted_by});
      }
    }
    if (claim.is_permit() && it.living.size() >= claim.permits()) {
      violate(Check::I7, "more permits were granted than there are",
              {it.living.front().granted_by});
    }
  }

  // Nobody overtakes: what is granted fits beside those who came before it, too.
  void judge_turn(const Claim& claim, RequestRef request, Counter& it) {
    const auto own = std::find_if(it.queue.begin(), it.queue.end(),
                                  [&](const Queued& each) { return each.request == request; });
    for (auto before = it.queue.begin(); before != own; ++before) {
      const auto ahead = static_cast<std::size_t>(before - it.queue.begin()) + 1;
      const bool has_room = !claim.is_permit() || it.living.size() + ahead < claim.permits();
      if (claim.fits_beside(before->claim) && has_room) continue;
      violate(Check::Q1, "the lock was granted past a request that came earlier and still waits",
              {before->record});
      break;
    }
    if (own != it.queue.end()) it.queue.erase(own);
  }

  void queued(const Record& record) {
    counter(record).queue.push_back({Claim(record), record.request, at()});
  }

  void left(const Record& record) {
    std::erase_if(counter(record).queue,
                  [&](const Queued& each) { return each.request == record.request; });
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

  // The grant that a record of the store is about; null: it has ended.
  static Living* hit_by(const Record& record, Counter& it) {
    const auto found = std::find_if(it.living.begin(), it.living.end(),
                                    [&](const Living& each) { return each.token == record.token; });
    return found == it.living.end() ? nullptr : &*found;
  }

  // Empty if it is this request's living grant, else what is wrong.
  static std::string_view own_living_grant(const Record& record, const Living* hit) {
    if (hit == nullptr) return "there was no such grant";
    if (hit->request != record.request) return "the grant was another request's";
    return {};
  }

  static std::vector<std::size_t> grant_of(const Living* hit, const Counter& it) {
    if (hit != nullptr) return {hit->granted_by};
    if (it.last_token == 0) return {};
    return {it.last_grant};
  }

  void renewed(const Record& record) {
    Counter& it = counter(record);
    Living* hit = hit_by(record, it);
    std::string_view wrong = own_living_grant(record, hit);
    if (wrong.empty() && hit->kept) wrong = "the grant had been released";
    if (wrong.empty() && record.time >= hit->deadline) wrong = "the grant had ended";
    if (wrong.empty() && record.operation != Operation::renew) wrong = "no renewal asked for it";
    if (!wrong.empty()) {
      violate(Check::I5, "a grant was prolonged although " + std::string(wrong), grant_of(hit, it));
    }
    count_idle(locks_[record.lock], record.time);
    if (hit != nullptr) hit->deadline = record.deadline;
    Request& request = requests_[record.request];
    request.deadline = std::max(request.deadline, record.deadline);
  }

  void expired(const Record& record) {
    Counter& it = counter(record);
    const Living* hit = hit_by(record, it);
    if (hit == nullptr) return;
    if (record.time < hit->deadline) {
      violate(Check::I6, "the store ended a grant before its time", {hit->granted_by});
    }
    count_idle(locks_[record.lock], record.time);
    end(record.token, it);
  }

  static void end(std::int64_t token, Counter& it) {
    std::erase_if(it.living, [&](const Living& each) { return each.token == token; });
  }

  void released(const Record& record) {
    Counter& it = counter(record);
    Living* hit = hit_by(record, it);
    const std::string_view wrong = own_living_grant(record, hit);
    if (!wrong.empty()) {
      violate(Check::I5, "a grant was ended although " + std::string(wrong), grant_of(hit, it));
    }
    if (record.operation == Operation::release) {
      Request& request = requests_[record.request];
      request.released = true;
      if (request.told == 0 || request.told == record.token) request.released_told = true;
    }
    count_idle(locks_[record.lock], record.time);
    if (hit == nullptr) return;
    hit->kept = record.deadline > record.time;
    if (!hit->kept) return end(record.token, it);
    hit->deadline = record.deadline;
  }

  // ---- the resource ------------------------------------------------------------------------

  Place& place(const Record& record) {
    const std::uint64_t key =
        (std::uint64_t{record.process} << 48) | (std::uint64_t{record.slot} << 32) | record.lock;
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
    if (record.token > it.highest()) remember_floor(record, it);
    Entered& entered = record.is_shared() ? it.reader : it.writer;
    if (record.token > entered.token) {
      entered = {record.token, record.request, at()};
      if (!record.is_shared()) it.sequence = 0;
    }
    if (record.token == it.writer.token) it.sequence = std::max(it.sequence, record.sequence);
  }

  // Without tokens the last to enter is let in, and nobody else.
  void judge_claim(const Record& record, Place& it) {
    const bool entering = record.operation == Operation::read;
    if (!entering && it.writer.request != 0 && record.request != it.writer.request) {
      violate(Check::I2, "a write was accepted although another request had entered since",
              {it.writer.record});
    }
    if (!entering && it.writer.request != 0) return;
    it.writer.request = record.request;
    it.writer.record = at();
  }

  void judge_mark(const Record& record, const Place& it) {
    const bool reads = record.is_shared();
    const Check broken = reads ? Check::I8 : Check::I2;
    if (record.token < it.writer.token) {
      violate(broken,
              reads ? "a reader below the write mark was accepted"
                    : "a token below the mark was accepted",
              {it.writer.record});
    } else if (it.writer.is_another(record)) {
      violate(broken, "the mark's token was accepted from another request", {it.writer.record});
    }
    if (!reads && it.reader.refuses(record)) {
      violate(Check::I8, "a writer below the read mark was accepted", {it.reader.record});
    }
    const Floor* floor = floor_under(record, it);
    if (floor != nullptr && record.token <= floor->token) {
      violate(Check::I8, "a token up to the floor was accepted where nobody has written since",
              {floor->record});
    }
  }

  void judge_lineage(const Record& record, const Place& it) {
    if (it.store != 0 && record.store != it.store) {
      violate(Check::I3, "a token of another store was accepted", {it.marked_by()});
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
    const bool reads = record.is_shared();
    const bool stale = it.writer.refuses(record) || (!reads && it.reader.refuses(record));
    const bool foreign =
        (it.has_mark() && record.store != it.store) || it.reader.is_another(record);
    const bool late = record.token != 0 && record.token == it.writer.token &&
                      record.operation == Operation::write && record.sequence <= it.sequence;
    const bool taken_over = record.token == 0 && record.request != it.writer.request;
    if (stale || foreign || late || taken_over || is_below_a_floor(record, it)) return;
    violate(Check::F1, "a token that is neither stale nor foreign was refused",
            it.has_mark() ? std::vector<std::size_t>{it.marked_by()} : std::vector<std::size_t>{});
  }

  void remember_floor(const Record& record, Place& it) const {
    const Floor* floor = floor_under(record, it);
    it.floor = record.is_shared() && floor != nullptr ? *floor : Floor{};
    it.store = record.store;
  }

  // A fence that was swept does not trust a store that it does not know.
  bool is_below_a_floor(const Record& record, const Place& it) const {
    const Floor* floor = floor_under(record, it);
    if (floor != nullptr) return record.token <= floor->token;
    return !it.has_mark() && std::any_of(floors_.begin(), floors_.end(), [&](const Floor& each) {
      return each.fence == record.process;
    });
  }

  const Floor* floor_under(const Record& record, const Place& it) const {
    return it.has_mark() ? &it.floor : floor_of(record);
  }

  const Floor* floor_of(const Record& record) const {
    const auto found = std::find_if(floors_.begin(), floors_.end(), [&](const Floor& each) {
      return each.fence == record.process && each.store == record.store;
    });
    return found == floors_.end() ? nullptr : &*found;
  }

  void swept(const Record& record) {
    if (record.lock == 0) {
      std::erase_if(floors_, [&](const Floor& each) {
        const bool same = each.fence == record.process && each.store == record.store;
        return same && each.token < record.token;
      });
      if (floor_of(record) == nullptr) {
        floors_.push_back({record.process, record.store, record.token, at()});
      }
      return;
    }
    Place& it = place(record);
    Record of_the_mark = record;
    of_the_mark.store = it.store;
    const Floor* floor = floor_of(of_the_mark);
    if (it.has_mark() && (floor == nullptr || it.highest() > floor->token)) {
      violate(Check::I8, "a mark above the floor was swept", {it.marked_by()});
    }
    it.store = 0;
    it.writer = it.reader = {};
    it.floor = {};
    it.sequence = 0;
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
    lock.waiters.push_back({Claim(record), record.request, record.process});
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
    const Claim claim(record);
    for (const Belief& other : lock.beliefs) {
      if (claim.fits_beside(other.claim)) continue;
      ++report_.overlaps.count;
      if (other.deadline > record.time) ++report_.overlaps.before_deadline;
      if (report_.overlaps.first.empty()) report_.overlaps.first = {other.record, at_};
    }
    lock.beliefs.push_back({claim, record.request, record.process, record.deadline, at()});
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
    std::int64_t free = 0;
    for (const Counter& each : lock.counters) free = std::max(free, free_since(each, lock.waiters));
    lock.idle += std::max<std::int64_t>(0, now - std::max({since, free, calm_since_}));
    if (lock.idle <= report_.liveness.longest_idle) return;
    report_.liveness.longest_idle = lock.idle;
    report_.liveness.idle_until = at_;
  }

  // From when on there was room for one of those who wait, if no grant is prolonged.
  static std::int64_t free_since(const Counter& it, const std::vector<Waiter>& waiters) {
    if (it.living.empty()) return 0;
    const auto shares = [](const auto& each) { return each.claim.is_shared(); };
    const bool all_share = std::all_of(waiters.begin(), waiters.end(), shares) &&
                           std::all_of(it.living.begin(), it.living.end(), shares);
    const std::size_t permits = it.living.back().claim.permits();
    if (all_share || it.living.size() < permits) return 0;
    std::vector<std::int64_t> ends;
    for (const Living& each : it.living) ends.push_back(each.deadline);
    std::sort(ends.begin(), ends.end(), std::greater<>());
    return ends[permits - 1];
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
  std::vector<Floor> floors_;
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
  constexpr std::string_view names[kChecks] = {"I1", "I2", "I3", "I4", "I5", "I6",
                                               "I7", "I8", "Q1", "H1", "F1", "R1"};
  return names[static_cast<std::size_t>(check)];
}

bool Report::judged(Check check) const {
  switch (check) {
    case Check::I5:
    case Check::I6:
    case Check::I7:
    case Check::Q1:
    case Check::H1:
    case Check::R1:
      return store_log || count(check) > 0;
    case Check::I1:
    case Check::I2:
    case Check::I3:
    case Check::I4:
    case Check::I8:
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
