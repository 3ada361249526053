#include "order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "plan.h"

namespace leasehold::drill {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

enum class Told { accepted, refused, nothing };

struct Access {
  Record record;  // as the client wrote it at the beginning; the value of a read is filled in
  std::int64_t asked = 0;
  std::int64_t answered = kNever;
  Told told = Told::nothing;
  // Of a claim: another one has entered by then. Never of one that was let write.
  std::int64_t overtaken = kNever;

  bool claims() const { return record.token == 0; }
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

  // Claims have no number that tells who entered first, but the resource has: it let nobody write
  // who was no longer the last.
  void resolve_claims() {
    std::unordered_map<RequestRef, const Access*> next_write;  // of the claim
    for (auto at = accesses_.rbegin(); at != accesses_.rend(); ++at) {
      Access& each = *at;
      if (each.writes() && each.told != Told::nothing) next_write[each.record.request] = &each;
      if (!each.claims() || each.writes()) continue;
      const auto found = next_write.extract(each.record.request);
      const Access* write = found ? found.mapped() : nullptr;
      each.overtaken = each.told == Told::refused      ? each.answered
                       : write == nullptr              ? kNever - 1
                       : write->told == Told::accepted ? kNever
                                                       : write->answered;
    }
  }

  void put_into_order(ResourceLog& log) {
    for (std::size_t i = 0; i < accesses_.size(); ++i) {
      if (may_have_entered_unseen(accesses_[i])) unseen_.insert(i);
    }
    while (const auto next = choose()) place(*next, log);
  }

 private:
  // A write with a token enters, too. A claim is entered before its read, which may be refused
  // then.
  static bool may_have_entered_unseen(const Access& it) {
    if (it.claims() && it.writes()) return false;
    return it.told == Told::nothing || (it.claims() && it.told == Told::refused);
  }

  static std::uint64_t base_or_value(const Access& it) {
    return it.writes() ? it.record.base : it.record.value;
  }

  // An accepted access that can have been done now: it saw what is there.
  bool fits(const Access& it) const {
    if (it.told != Told::accepted) return false;
    const bool repeated = it.writes() && it.record.value == value_;
    return base_or_value(it) == value_ || repeated;
  }

  // A refusal that needs nobody else to enter first.
  bool is_explained(const Access& it) const {
    if (it.told != Told::refused) return false;
    return it.claims() ? it.record.request != holder_ : it.record.token < token_;
  }

  // An index into accesses_. Nothing is placed before it must be: one that was asked for later may
  // have been done earlier.
  std::optional<std::size_t> choose() {
    while (first_ < accesses_.size() && !is_open(first_)) done_.erase(first_++);
    const auto due = first_answered();
    if (!due) return std::nullopt;
    const Access& must = accesses_[*due];
    if (is_explained(must)) return due;
    const auto best = best_before(must.answered);
    if (!best) return due;
    const auto unseen = must.told == Told::refused ? unseen_before(must) : std::nullopt;
    const auto rank = [this](std::size_t i) {
      return std::pair(accesses_[i].record.token, accesses_[i].overtaken);
    };
    if (unseen && rank(*unseen) < rank(*best)) return due;
    const bool can_be_alone = must.claims() && fits(must) && must.overtaken != kNever;
    return can_be_alone && has_follower(*best, *due) ? due : best;
  }

  // Somebody but `due` can enter after the claim before its write is refused.
  bool has_follower(std::size_t claim, std::size_t due) const {
    for (std::size_t i = first_; i < accesses_.size(); ++i) {
      if (accesses_[i].asked > accesses_[claim].overtaken) return false;
      const bool other = i != claim && i != due && is_open(i);
      if (other && accesses_[i].told == Told::accepted && !accesses_[i].writes()) return true;
    }
    return false;
  }

  std::optional<std::size_t> first_answered() const {
    std::optional<std::size_t> due;
    for (std::size_t i = first_; i < accesses_.size(); ++i) {
      if (due && accesses_[i].asked > accesses_[*due].answered) break;
      if (!is_open(i)) continue;
      if (!due || accesses_[i].answered < accesses_[*due].answered) due = i;
    }
    return due;
  }

  // Of those that can have been done before `answered`.
  std::optional<std::size_t> best_before(std::int64_t answered) const {
    std::optional<std::size_t> best;
    const auto rank = [this](std::size_t i) {
      const Access& it = accesses_[i];
      return std::tuple(it.record.token, it.overtaken, it.writes());
    };
    for (std::size_t i = first_; i < accesses_.size() && accesses_[i].asked <= answered; ++i) {
      if (!is_open(i) || !fits(accesses_[i])) continue;
      if (!best || rank(i) < rank(*best)) best = i;
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
      entered_ = it.asked;
    }
  }

  // Whoever entered last is refused only if somebody else has entered since; so somebody did who
  // was not told.
  void enter_unseen(const Access& refused, ResourceLog& log) {
    const auto found = unseen_before(refused);
    if (!found) return;
    const Access& it = accesses_[*found];
    unseen_.erase(*found);
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
    entered_ = it.asked;
  }

  // The lowest token, or the claim that was answered first: the others may be needed later.
  std::optional<std::size_t> unseen_before(const Access& refused) const {
    std::optional<std::size_t> best;
    for (const std::size_t at : unseen_) {
      const Access& it = accesses_[at];
      if (it.asked > refused.answered) break;
      const bool placed = it.told != Told::nothing && (at < first_ || done_.contains(at));
      if (placed || it.answered < entered_) continue;
      const bool later = it.record.token > refused.record.token ||
                         (it.claims() && it.record.request != refused.record.request);
      if (!later) continue;
      const auto rank = [this](std::size_t i) {
        return std::pair(accesses_[i].record.token, accesses_[i].answered);
      };
      if (!best || rank(at) < rank(*best)) best = at;
    }
    return best;
  }

  std::vector<Access> accesses_;
  std::size_t first_ = 0;
  std::unordered_set<std::size_t> done_;  // beyond first_
  std::set<std::size_t> unseen_;          // may have entered without being told
  std::uint64_t value_ = 0;
  std::int64_t token_ = 0;
  RequestRef holder_ = 0;
  std::int64_t entered_ = 0;  // when the holder asked for its last access
  std::int64_t time_ = 0;
};

struct ResourceRef {
  LockRef lock = 0;
  std::uint16_t slot = 0;  // as in Record
  auto operator<=>(const ResourceRef&) const = default;
};

std::string name_of(const ResourceRef& resource, const History& history) {
  const auto slot = resource.slot == 0 ? std::nullopt : std::optional(Slot{resource.slot - 1});
  return resource_name(history.lock_name(resource.lock), slot);
}

// In the order of the names' numbers.
std::map<ResourceRef, std::vector<Access>> collect(const History& history) {
  std::map<ResourceRef, std::vector<Access>> by_resource;
  std::unordered_map<ProcessRef, std::size_t> under_way;  // position in its resource's accesses
  for (const Record& record : history.records()) {
    const bool access = record.operation == Operation::read || record.operation == Operation::write;
    if (!access) continue;
    auto& accesses = by_resource[{record.lock, record.slot}];
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
  return by_resource;
}

}  // namespace

ResourceLog order_accesses(History& history,
                           const std::unordered_map<std::string, std::uint64_t>& last) {
  history.sort();
  ResourceLog log;
  for (auto& [resource, accesses] : collect(history)) {
    const auto known = last.find(name_of(resource, history));
    const std::uint64_t value = known == last.end() ? 0 : known->second;
    Sequence sequence(std::move(accesses));
    sequence.resolve_unknown(value);
    sequence.resolve_claims();
    sequence.count(value, log);
    sequence.put_into_order(log);
  }
  return log;
}

}  // namespace leasehold::drill
