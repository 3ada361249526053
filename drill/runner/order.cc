#include "order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <unordered_set>

namespace leasehold::drill {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

enum class Told { accepted, refused, nothing };

struct Access {
  Record record;  // as the client wrote it at the beginning; the value of a read is filled in
  std::int64_t asked = 0;
  std::int64_t answered = kNever;
  Told told = Told::nothing;

  bool writes() const { return record.operation == Operation::write; }
};

// The accesses to one resource, and what is known of it as they are put into order.
class Sequence {
 public:
  explicit Sequence(std::vector<Access> accesses) : accesses_(std::move(accesses)) {
    std::stable_sort(accesses_.begin(), accesses_.end(),
                     [](const Access& a, const Access& b) { return a.asked < b.asked; });
  }

  // Writes that got no answer, but were seen, are accesses like the others. Of a write that was
  // sent several times, the one with an answer stands for all: nobody else can have entered before
  // it.
  void resolve_unknown(std::uint64_t last) {
    std::unordered_set<std::uint64_t> seen{last};
    std::unordered_set<std::uint64_t> done;
    for (const Access& each : accesses_) {
      if (each.told != Told::accepted) continue;
      seen.insert(base_or_value(each));
      if (each.writes()) done.insert(each.record.value);
    }
    // A write that was seen has seen its own base.
    for (bool more = true; more;) {
      more = false;
      for (Access& each : accesses_) {
        if (each.told != Told::nothing || !each.writes()) continue;
        if (!seen.contains(each.record.value) || !done.insert(each.record.value).second) continue;
        each.told = Told::accepted;
        seen.insert(each.record.base);
        more = true;
      }
    }
  }

  void count(std::uint64_t last, ResourceLog& log) const {
    std::unordered_map<std::uint64_t, std::uint64_t> base_of;
    for (const Access& each : accesses_) {
      if (each.writes() && each.told == Told::accepted) {
        base_of.emplace(each.record.value, each.record.base);
      }
    }
    if (last != 0 && !base_of.contains(last)) ++log.foreign_values;
    std::unordered_set<std::uint64_t> kept;
    for (std::uint64_t at = last; at != 0 && kept.insert(at).second;) {
      const auto before = base_of.find(at);
      at = before == base_of.end() ? 0 : before->second;
    }
    for (const Access& each : accesses_) {
      if (!each.writes() || each.told != Told::accepted || each.answered == kNever) continue;
      ++log.writes;
      if (!kept.contains(each.record.value)) ++log.lost;
    }
  }

  void put_into_order(ResourceLog& log) {
    for (std::size_t i = 0; i < accesses_.size(); ++i) {
      if (accesses_[i].told == Told::nothing) unseen_.push_back(i);
    }
    while (const auto next = choose()) place(*next, log);
  }

 private:
  static std::uint64_t base_or_value(const Access& it) {
    return it.writes() ? it.record.base : it.record.value;
  }

  // Lower is better: reads of what is there, then writes over it, then refusals, then what does not
  // fit at all.
  int fit(const Access& it) const {
    if (it.told == Told::refused) return 2;
    const bool repeated = it.writes() && it.record.value == value_;
    if (base_or_value(it) != value_ && !repeated) return 3;
    return it.writes() ? 1 : 0;
  }

  // Among those that nobody was answered before; an index into accesses_.
  std::optional<std::size_t> choose() {
    while (first_ < accesses_.size() && !is_open(first_)) done_.erase(first_++);
    std::int64_t earliest = kNever;
    for (std::size_t i = first_; i < accesses_.size() && accesses_[i].asked <= earliest; ++i) {
      if (is_open(i)) earliest = std::min(earliest, accesses_[i].answered);
    }
    std::optional<std::size_t> best;
    const auto better = [this](const Access& a, const Access& b) {
      const int one = fit(a);
      const int other = fit(b);
      if (one != other) return one < other;
      if (one == 3) return a.answered < b.answered;
      return a.record.token < b.record.token;
    };
    for (std::size_t i = first_; i < accesses_.size() && accesses_[i].asked <= earliest; ++i) {
      if (is_open(i) && (!best || better(accesses_[i], accesses_[*best]))) best = i;
    }
    return best;
  }

  bool is_open(std::size_t i) const {
    return accesses_[i].told != Told::nothing && !done_.contains(i);
  }

  void place(std::size_t at, ResourceLog& log) {
    const Access& it = accesses_[at];
    done_.insert(at);
    if (it.told == Told::refused && it.record.request == holder_) enter_unseen(it, log);
    Record record = it.record;
    record.kind = it.told == Told::refused ? Kind::refuse : Kind::accept;
    time_ = std::max(time_, it.told == Told::refused ? it.answered : it.asked);
    record.time = time_;
    log.records.push_back(record);
    if (it.told == Told::refused) return;
    if (it.writes()) value_ = it.record.value;
    if (it.record.token >= token_) {
      token_ = it.record.token;
      holder_ = it.record.request;
    }
  }

  // Whoever entered last is refused only if somebody else has entered since; so somebody did who
  // was not told.
  void enter_unseen(const Access& refused, ResourceLog& log) {
    for (auto at = unseen_.begin(); at != unseen_.end(); ++at) {
      const Access& it = accesses_[*at];
      if (it.asked > refused.answered) return;
      const bool later = it.record.token > refused.record.token ||
                         (it.record.token == 0 && it.record.request != refused.record.request);
      if (!later) continue;
      unseen_.erase(at);
      Record record = it.record;
      record.kind = Kind::accept;
      record.operation = Operation::read;
      record.value = value_;
      record.base = 0;
      record.sequence = 0;
      time_ = std::max(time_, it.asked);
      record.time = time_;
      log.records.push_back(record);
      token_ = record.token;
      holder_ = record.request;
      return;
    }
  }

  std::vector<Access> accesses_;
  std::size_t first_ = 0;
  std::unordered_set<std::size_t> done_;  // beyond first_
  std::vector<std::size_t> unseen_;       // got no answer, and nobody saw their value
  std::uint64_t value_ = 0;
  std::int64_t token_ = 0;
  RequestRef holder_ = 0;
  std::int64_t time_ = 0;
};

// By lock, in the order of the names' numbers.
std::map<LockRef, std::vector<Access>> collect(const History& history) {
  std::map<LockRef, std::vector<Access>> by_lock;
  std::unordered_map<ProcessRef, std::size_t> under_way;  // position in its lock's accesses
  for (const Record& record : history.records()) {
    const bool access = record.operation == Operation::read || record.operation == Operation::write;
    if (!access) continue;
    auto& accesses = by_lock[record.lock];
    if (record.kind == Kind::invoke) {
      under_way[record.process] = accesses.size();
      accesses.push_back({record, record.time});
      continue;
    }
    const auto begun = under_way.find(record.process);
    if (begun == under_way.end()) continue;
    Access& it = accesses[begun->second];
    if (record.kind == Kind::unknown) continue;
    it.answered = record.time;
    it.told = record.kind == Kind::ok ? Told::accepted : Told::refused;
    if (!it.writes()) it.record.value = record.value;
  }
  return by_lock;
}

}  // namespace

ResourceLog order_accesses(History& history,
                           const std::unordered_map<std::string, std::uint64_t>& last) {
  history.sort();
  ResourceLog log;
  for (auto& [lock, accesses] : collect(history)) {
    const auto known = last.find(history.lock_name(lock));
    const std::uint64_t value = known == last.end() ? 0 : known->second;
    Sequence sequence(std::move(accesses));
    sequence.resolve_unknown(value);
    sequence.count(value, log);
    sequence.put_into_order(log);
  }
  return log;
}

}  // namespace leasehold::drill
