#include "moments.h"

#include <algorithm>

namespace leasehold::drill {
namespace {

constexpr std::size_t kOfEach = 5;

std::string_view words_for(Sign sign) {
  switch (sign) {
    case Sign::accepted:
      return "write accepted";
    case Sign::refused:
      return "stale write refused";
    case Sign::stale:
      return "stale write accepted";
    case Sign::kill:
      return "killed";
  }
  return "";
}

// From the lease under which it was written, if there is one.
std::int64_t beginning_of(const Lane& lane, const Mark& mark) {
  const auto after = std::partition_point(lane.held.begin(), lane.held.end(),
                                          [&](const Held& held) { return held.from <= mark.time; });
  for (auto held = after; held != lane.held.begin();) {
    --held;
    if (held->first_token == mark.token) return held->from;
    if (after - held > 8) break;
  }
  return mark.time;
}

std::string name_of(const Lane& lane, const Mark& mark) {
  const std::string& owner = owner_at(lane, mark.time);
  if (lane.lock.empty()) return owner;
  return owner + " at " + lane.lock + (mark.slot == 0 ? "" : "#" + std::to_string(mark.slot - 1));
}

// The mark that was made for this record, if it was drawn.
std::pair<const Lane*, const Mark*> drawn_for(const Record& record, const Timeline& timeline) {
  for (const Lane& lane : timeline.lanes) {
    const auto mark =
        std::lower_bound(lane.marks.begin(), lane.marks.end(), record.time,
                         [](const Mark& a, std::int64_t time) { return a.time < time; });
    if (mark == lane.marks.end() || mark->time != record.time) continue;
    if (mark->token == record.token) return {&lane, &*mark};
  }
  return {nullptr, nullptr};
}

Moment of(const Violation& violation, const History& history, const Timeline& timeline) {
  const auto& records = history.records();
  Moment moment{0, 0, 0, std::string(to_string(violation.check)) + " broken", "", "", true};
  moment.details = violation.sentence;
  for (const std::size_t at : violation.records) {
    if (at >= records.size()) continue;
    const Record& record = records[at];
    const auto [lane, mark] = drawn_for(record, timeline);
    const std::int64_t from = lane ? beginning_of(*lane, *mark) : record.time;
    moment.from = moment.to == 0 ? from : std::min(moment.from, from);
    moment.to = moment.time = record.time;
    moment.where = lane ? name_of(*lane, *mark) : history.process_name(record.process);
    moment.details += "\n" + describe(history, at);
  }
  return moment;
}

Moment of(const Lane& lane, const Mark& mark) {
  const std::string token = mark.token == 0 ? "" : "token " + std::to_string(mark.token);
  return {beginning_of(lane, mark),          mark.time,           mark.time,
          std::string(words_for(mark.sign)), name_of(lane, mark), token,
          mark.sign == Sign::stale};
}

std::vector<Moment> first_of(Sign sign, const Timeline& timeline) {
  std::vector<Moment> all;
  for (const Lane& lane : timeline.lanes) {
    std::size_t found = 0;
    for (const Mark& mark : lane.marks) {
      if (mark.sign != sign) continue;
      all.push_back(of(lane, mark));
      if (++found == kOfEach) break;
    }
  }
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.time < b.time; });
  if (all.size() > kOfEach) all.resize(kOfEach);
  return all;
}

// So that what led to it, and what came of it, is seen too.
void widen(Moment& moment, const Timeline& timeline) {
  const std::int64_t margin = std::max<std::int64_t>((moment.to - moment.from) / 8, 1'000'000);
  moment.from = std::max(moment.from - margin, timeline.from);
  moment.to = std::min(moment.to + margin, timeline.to);
}

}  // namespace

std::vector<Moment> moments_of(const Outcome& outcome, const History& history,
                               const Timeline& timeline) {
  std::vector<Moment> all;
  for (const Violation& violation : outcome.report.violations) {
    all.push_back(of(violation, history, timeline));
  }
  for (const Sign sign : {Sign::stale, Sign::refused, Sign::kill}) {
    for (Moment& moment : first_of(sign, timeline)) all.push_back(std::move(moment));
  }
  for (Moment& moment : all) widen(moment, timeline);
  return all;
}

}  // namespace leasehold::drill
