#include <cstdio>
#include <iterator>

#include "leasehold/drill/report.h"

namespace leasehold::drill {
namespace {

constexpr CheckDoc kChecksInWords[] = {
    {Check::I1, "tokens strictly increase per lock"},
    {Check::I2, "the resource accepts no token below its mark"},
    {Check::I3, "every accepted token was granted once, to this request"},
    {Check::I4, "no accepted update is lost"},
    {Check::I5, "release and renew touch only their own grant"},
    {Check::I6, "the store never has two unexpired exclusive grants of a lock"},
    {Check::I7,
     "no shared grant is beside an exclusive one, no permit too many, no slot given twice"},
    {Check::I8, "no reader enters below a write mark, no writer below a read mark"},
    {Check::Q1, "nobody is granted past a request that came earlier and excludes it"},
    {Check::H1, "a holder's deadline is not later than the store's"},
    {Check::F1, "the resource refuses only what is stale, foreign or out of order"},
    {Check::R1, "what a client was told of its release is true"},
};
static_assert(std::size(kChecksInWords) == kChecks);

Row number(std::string name, std::uint64_t value, std::string meaning, Mood mood = Mood::plain) {
  return {std::move(name), std::to_string(value), std::move(meaning), mood};
}

// Good at zero, bad beyond.
Row damage(std::string name, std::uint64_t value, std::string meaning) {
  return number(std::move(name), value, std::move(meaning), value == 0 ? Mood::good : Mood::bad);
}

std::string overlap_of(const Outcome& outcome) {
  if (outcome.permits > 0) return "two believed to have the same slot at the same time";
  if (outcome.partitions > 0) return "two believed to own the same partition at the same time";
  if (outcome.mode == "election") return "two believed to lead at the same time";
  if (outcome.readers > 0) return "one believed to hold it alone while another one held it";
  return "two believed to hold it at the same time";
}

std::string a_second(std::uint64_t count, std::chrono::nanoseconds span) {
  const double seconds = std::chrono::duration<double>(span).count();
  char text[48];
  std::snprintf(text, sizeof text, "%.3g a second",
                seconds > 0 ? static_cast<double>(count) / seconds : 0);
  return text;
}

// The first of those that were refused: with its numbers it says what a fence does.
void add_an_example(const Outcome& outcome, std::vector<Row>& all) {
  for (const LateWrite& late : outcome.late_writes) {
    if (late.answer != "refused" || late.token == 0) continue;
    all.push_back(
        {"one of them", "token " + std::to_string(late.token),
         "at " + late.resource + ", where token " + std::to_string(late.successor) + " had entered",
         Mood::plain});
    return;
  }
}

std::uint64_t broken(const Report& report) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : report.counts) sum += count;
  return sum;
}

// "I1, I2; not judged, without a log of the store: I5".
std::string checks_in_words(const Report& report) {
  std::string judged;
  std::string not_judged;
  for (const CheckDoc& doc : kChecksInWords) {
    std::string& into = report.judged(doc.check) ? judged : not_judged;
    into += (into.empty() ? "" : ", ") + std::string(to_string(doc.check));
  }
  if (not_judged.empty()) return judged;
  return judged + "; not judged, without a log of the store: " + not_judged;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::held:
      return "held";
    case Verdict::damage:
      return "damage";
    case Verdict::too_little:
      return "too_little";
  }
  return "too_little";
}

std::span<const CheckDoc> check_docs() {
  return kChecksInWords;
}

std::vector<Row> rows(const Outcome& outcome) {
  const Report& report = outcome.report;
  std::vector<Row> all;
  for (const Injected& fault : outcome.faults) {
    all.push_back(number("fault: " + fault.fault, fault.times, "injected"));
  }
  all.push_back(number("full cycles", outcome.cycles,
                       "frozen past the lease, a successor entered, thawed, late write answered; " +
                           a_second(outcome.cycles, outcome.duration)));
  if (outcome.unfinished > 0) {
    all.push_back(number("unfinished cycles", outcome.unfinished, "not counted above"));
  }
  all.push_back(number("overlaps at the lock", report.overlaps.count, overlap_of(outcome)));
  if (outcome.readers > 0) {
    all.push_back(number("reads meanwhile", outcome.reads_meanwhile,
                         "by those who share the lock, while a writer was frozen"));
  }
  all.push_back(number("stale writes refused", outcome.stale_refused, "the fence at work",
                       outcome.stale_refused > 0 ? Mood::good : Mood::plain));
  add_an_example(outcome, all);
  all.push_back(
      damage("stale writes accepted", outcome.stale_accepted, "written by a holder that was late"));
  all.push_back(damage("updates lost", outcome.updates_lost,
                       "acknowledged, and no trace of them in the end"));
  all.push_back(damage("invariants broken", broken(report), checks_in_words(report)));
  if (outcome.stale_unknown > 0) {
    all.push_back(number("late writes unanswered", outcome.stale_unknown, "no answer came"));
  }
  if (outcome.foreign_values > 0) {
    all.push_back(
        damage("foreign values", outcome.foreign_values, "a resource holds what nobody wrote"));
  }
  all.push_back(number("grants", report.grants, "of all locks"));
  all.push_back(number("writes", outcome.writes, "acknowledged by the resource"));
  return all;
}

}  // namespace leasehold::drill
