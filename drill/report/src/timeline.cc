#include "timeline.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace leasehold::drill {
namespace {

class Drawing {
 public:
  explicit Drawing(const History& history) : history_(history) {}

  Timeline draw() {
    for (const Record& record : history_.records()) add(record);
    finish();
    return std::move(timeline_);
  }

 private:
  using Place = std::pair<LockRef, ProcessRef>;
  using Open = std::pair<ProcessRef, Operation>;

  void add(const Record& record) {
    if (timeline_.from == 0) timeline_.from = record.time;
    timeline_.to = record.time;
    switch (record.kind) {
      case Kind::invoke:
        if (record.operation == Operation::release) end(place_of(record), record.time);
        return;
      case Kind::ok:
      case Kind::fail:
      case Kind::unknown:
        return told(record);
      case Kind::accept:
      case Kind::refuse:
        return answered(record);
      case Kind::fault:
        return fault_began(record);
      case Kind::heal:
        return fault_ended(record);
      default:
        return;
    }
  }

  static Place place_of(const Record& record) { return {record.lock, record.process}; }
  Lane& lane(LockRef lock, ProcessRef process) { return lanes_[{lock, process}]; }

  // ---- leases ------------------------------------------------------------------------------

  void told(const Record& record) {
    if (record.operation == Operation::acquire && record.kind == Kind::ok) return began(record);
    if (record.operation == Operation::renew) return renewed(record);
    if (record.operation == Operation::release) end(place_of(record), record.time);
  }

  void began(const Record& record) {
    const Place place = place_of(record);
    end(place, record.time);
    open_[place] = {record.time, record.deadline, 0, record.token, record.token};
    if (record.request != 0) holders_[record.request] = record.process;
  }

  void renewed(const Record& record) {
    const Place place = place_of(record);
    const auto held = open_.find(place);
    if (held == open_.end()) return;
    if (record.kind == Kind::fail) return end(place, record.time);
    if (record.kind == Kind::ok && record.deadline != 0) held->second.until = record.deadline;
  }

  void end(const Place& place, std::int64_t time) {
    const auto found = open_.find(place);
    if (found == open_.end()) return;
    Held held = found->second;
    held.to = time;
    held.until = held.until == 0 ? time : std::clamp(held.until, held.from, time);
    lane(place.first, place.second).held.push_back(held);
    open_.erase(found);
  }

  // ---- the resource ------------------------------------------------------------------------

  void answered(const Record& record) {
    const bool accepted = record.kind == Kind::accept;
    std::int64_t& highest = marks_[{record.lock, record.slot}];
    const bool stale = accepted && record.token != 0 && record.token < highest;
    if (accepted) highest = std::max(highest, record.token);
    if (accepted && record.operation != Operation::write && !stale) return;
    const Sign sign = !accepted ? Sign::refused : stale ? Sign::stale : Sign::accepted;
    const auto holder = holders_.find(record.request);
    const ProcessRef process = holder == holders_.end() ? record.process : holder->second;
    lane(record.lock, process).marks.push_back({record.time, record.token, sign, 1, record.slot});
  }

  // ---- faults ------------------------------------------------------------------------------

  void fault_began(const Record& record) {
    if (record.operation == Operation::crash) {
      killed_[record.process].push_back(record.time);
      end_all_of(record.process, record.time);
    }
    faults_.emplace(Open{record.process, record.operation}, record.time);
  }

  void end_all_of(ProcessRef process, std::int64_t time) {
    std::vector<Place> ended;
    for (const auto& [place, held] : open_) {
      if (place.second == process) ended.push_back(place);
    }
    for (const Place& place : ended) end(place, time);
  }

  void fault_ended(const Record& record) {
    const auto began = faults_.find({record.process, record.operation});
    if (began == faults_.end()) return;
    spans_[record.process].push_back({began->second, record.time, record.operation});
    faults_.erase(began);
  }

  // ---- the end -----------------------------------------------------------------------------

  void finish() {
    while (!open_.empty()) end(open_.begin()->first, timeline_.to);
    for (const auto& [what, since] : faults_) {
      // Who died and was not brought back did not suffer a fault that lasts.
      if (what.second == Operation::crash) continue;
      spans_[what.first].push_back({since, timeline_.to, what.second});
    }
    give_faults_to_lanes();
    for (auto& [place, each] : lanes_) {
      if (place.first != 0) each.lock = history_.lock_name(place.first);
      each.owners = {{timeline_.from, history_.process_name(place.second)}};
      timeline_.lanes.push_back(std::move(each));
    }
    order();
    timeline_.lanes = shared(std::move(timeline_.lanes));
  }

  void give_faults_to_lanes() {
    std::map<ProcessRef, std::vector<Lane*>> lanes_of;
    for (auto& [place, each] : lanes_) lanes_of[place.second].push_back(&each);
    const auto of = [&](ProcessRef process) {
      auto& found = lanes_of[process];
      if (found.empty()) found.push_back(&lane(0, process));
      return found;
    };
    for (const auto& [process, spans] : spans_) {
      for (Lane* each : of(process)) each->faults = spans;
    }
    for (const auto& [process, times] : killed_) {
      for (Lane* each : of(process)) {
        for (const std::int64_t time : times) each->marks.push_back({time, 0, Sign::kill});
      }
    }
  }

  void order() {
    for (Lane& each : timeline_.lanes) {
      const auto earlier = [](const auto& a, const auto& b) { return a.from < b.from; };
      std::stable_sort(each.faults.begin(), each.faults.end(), earlier);
      std::stable_sort(each.marks.begin(), each.marks.end(),
                       [](const Mark& a, const Mark& b) { return a.time < b.time; });
    }
    // What has no lock comes last; "worker-2" before "worker-10".
    const auto key = [](const Lane& lane) {
      const std::string& owner = lane.owners.front().name;
      return std::tuple(lane.lock.empty(), lane.lock.size(), lane.lock, owner.size(), owner);
    };
    std::stable_sort(timeline_.lanes.begin(), timeline_.lanes.end(),
                     [&](const Lane& a, const Lane& b) { return key(a) < key(b); });
  }

  static std::int64_t beginning_of(const Lane& lane) {
    std::int64_t first = INT64_MAX;
    if (!lane.held.empty()) first = std::min(first, lane.held.front().from);
    if (!lane.faults.empty()) first = std::min(first, lane.faults.front().from);
    if (!lane.marks.empty()) first = std::min(first, lane.marks.front().time);
    return first;
  }
  static bool was_left_before(const Lane& lane, std::int64_t time) {
    if (lane.marks.empty() || lane.marks.back().sign != Sign::kill) return false;
    const std::int64_t death = lane.marks.back().time;
    return death <= time && (lane.held.empty() || lane.held.back().to <= death) &&
           (lane.faults.empty() || lane.faults.back().to <= time);
  }
  template <class Item>
  static void append(std::vector<Item>& to, const std::vector<Item>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  // Else a drill that kills many workers would have hundreds of lanes.
  static std::vector<Lane> shared(std::vector<Lane> lanes) {
    std::vector<Lane> fewer;
    for (Lane& lane : lanes) {
      const std::int64_t begin = beginning_of(lane);
      const auto free = std::find_if(fewer.begin(), fewer.end(), [&](const Lane& each) {
        return each.lock == lane.lock && !lane.lock.empty() && was_left_before(each, begin);
      });
      if (free == fewer.end()) {
        fewer.push_back(std::move(lane));
        continue;
      }
      free->owners.push_back({begin, lane.owners.front().name});
      append(free->held, lane.held);
      append(free->faults, lane.faults);
      append(free->marks, lane.marks);
    }
    return fewer;
  }

  const History& history_;
  Timeline timeline_;
  std::map<Place, Lane> lanes_;
  std::map<Place, Held> open_;
  std::map<Open, std::int64_t> faults_;
  std::map<ProcessRef, std::vector<FaultSpan>> spans_;
  std::map<ProcessRef, std::vector<std::int64_t>> killed_;
  std::map<std::pair<LockRef, std::uint16_t>, std::int64_t> marks_;  // by resource
  std::unordered_map<RequestRef, ProcessRef> holders_;
};

// ---- fewer things to draw ----------------------------------------------------------------------

struct Stretch {
  std::int64_t from;
  std::int64_t to;
};

// Shown exactly, whatever happens there, so that what led to it can be seen.
constexpr std::int64_t kAround = 20'000'000;

void add_lively(const Lane& lane, std::vector<Stretch>& all) {
  for (const FaultSpan& fault : lane.faults)
    all.push_back({fault.from - kAround, fault.to + kAround});
  for (const Mark& mark : lane.marks) {
    if (mark.sign != Sign::accepted) all.push_back({mark.time - kAround, mark.time + kAround});
  }
  for (const Held& held : lane.held) {
    if (held.until != held.to) all.push_back({held.from, held.to + kAround});
  }
}

// Where something went wrong at this lock, in whichever lane.
std::vector<Stretch> lively(const Timeline& timeline, const std::string& lock) {
  std::vector<Stretch> all;
  for (const Lane& lane : timeline.lanes) {
    if (lane.lock == lock) add_lively(lane, all);
  }
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.from < b.from; });
  std::vector<Stretch> joined;
  for (const Stretch& each : all) {
    if (!joined.empty() && each.from <= joined.back().to) {
      joined.back().to = std::max(joined.back().to, each.to);
    } else {
      joined.push_back(each);
    }
  }
  return joined;
}

bool touches(const std::vector<Stretch>& stretches, const Stretch& one) {
  const auto after = std::partition_point(stretches.begin(), stretches.end(),
                                          [&](const Stretch& each) { return each.to < one.from; });
  return after != stretches.end() && after->from <= one.to;
}

template <class Span>
Stretch stretch_of(const Span& span) {
  return {span.from, span.to};
}
Stretch stretch_of(const Mark& mark) {
  return {mark.time, mark.time};
}

int kind_of(const Held&) {
  return 0;
}
int kind_of(const FaultSpan& fault) {
  return static_cast<int>(fault.what);
}
int kind_of(const Mark& mark) {
  return static_cast<int>(mark.sign);
}

void join(Held& into, const Held& next) {
  // The part after the lease stays visible: as long as all of them together.
  const std::int64_t believed = (into.to - into.until) + (next.to - next.until);
  into.to = next.to;
  into.until = std::max(into.from, into.to - believed);
  into.last_token = next.last_token;
  into.count += next.count;
}
void join(FaultSpan& into, const FaultSpan& next) {
  into.to = std::max(into.to, next.to);
  into.count += next.count;
}
void join(Mark& into, const Mark& next) {
  into.count += next.count;
}

// Joins only what is of one kind; others may lie between.
template <class Item>
std::vector<Item> joined(const std::vector<Item>& items, std::int64_t span,
                         const std::vector<Stretch>& kept) {
  std::vector<Item> fewer;
  std::map<int, std::size_t> last;  // by kind: where it may grow
  for (const Item& item : items) {
    if (touches(kept, stretch_of(item))) {
      last.erase(kind_of(item));
      fewer.push_back(item);
      continue;
    }
    const auto before = last.find(kind_of(item));
    if (before != last.end() &&
        stretch_of(item).to - stretch_of(fewer[before->second]).from < span) {
      join(fewer[before->second], item);
      continue;
    }
    last[kind_of(item)] = fewer.size();
    fewer.push_back(item);
  }
  return fewer;
}

}  // namespace

const std::string& owner_at(const Lane& lane, std::int64_t time) {
  const auto next = std::find_if(lane.owners.begin() + 1, lane.owners.end(),
                                 [&](const Lane::Owner& each) { return each.from > time; });
  return std::prev(next)->name;
}

Timeline timeline_of(const History& history) {
  return Drawing(history).draw();
}

Timeline thinned(const Timeline& timeline, std::int64_t span, bool quiet_only) {
  Timeline fewer{timeline.from, timeline.to, {}};
  for (const Lane& lane : timeline.lanes) {
    const auto kept = quiet_only ? lively(timeline, lane.lock) : std::vector<Stretch>{};
    fewer.lanes.push_back({lane.lock, lane.owners, joined(lane.held, span, kept),
                           joined(lane.faults, span, kept), joined(lane.marks, span, kept)});
  }
  return fewer;
}

}  // namespace leasehold::drill
