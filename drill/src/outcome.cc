#include "leasehold/drill/outcome.h"

#include <numeric>

namespace leasehold::drill {
namespace {

std::string counted(std::uint64_t number, std::string_view one, std::string_view many) {
  return std::to_string(number) + " " + std::string(number == 1 ? one : many);
}

std::string damage_of(const Outcome& outcome) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (outcome.stale_accepted > 0) {
    add(counted(outcome.stale_accepted, "stale write was", "stale writes were") + " accepted");
  }
  if (outcome.updates_lost > 0) {
    add(counted(outcome.updates_lost, "update was", "updates were") + " lost");
  }
  if (outcome.foreign_values > 0) add("a resource holds what nobody wrote");
  for (std::size_t i = 0; i < kChecks; ++i) {
    if (outcome.report.counts[i] == 0) continue;
    add(std::string(to_string(static_cast<Check>(i))) + " was broken " +
        counted(outcome.report.counts[i], "time", "times"));
  }
  if (!outcome.report.clean()) text += " (docs/proof.md says what these invariants are)";
  return text;
}

}  // namespace

std::uint64_t injected(const Outcome& outcome) {
  return std::accumulate(
      outcome.faults.begin(), outcome.faults.end(), std::uint64_t{0},
      [](std::uint64_t sum, const Injected& fault) { return sum + fault.times; });
}

Verdict judge(const Outcome& outcome) {
  if (outcome.stale_accepted > 0 || outcome.updates_lost > 0 || outcome.foreign_values > 0 ||
      !outcome.report.clean()) {
    return Verdict::damage;
  }
  for (const Injected& fault : outcome.faults) {
    if (fault.times == 0) return Verdict::too_little;
    // A fence that was never asked to refuse anything has not been seen to.
    const bool idle = outcome.cycles == 0 || outcome.stale_refused == 0;
    const bool alone = outcome.readers > 0 && outcome.reads_meanwhile == 0;
    if (fault.fault == "pause" && (idle || alone)) return Verdict::too_little;
  }
  return outcome.writes == 0 || outcome.faults.empty() ? Verdict::too_little : Verdict::held;
}

std::string sentence(const Outcome& outcome) {
  switch (judge(outcome)) {
    case Verdict::held:
      return "Nothing stale was accepted and no update was lost: " +
             counted(outcome.stale_refused, "late write was", "late writes were") + " refused, " +
             counted(injected(outcome), "fault", "faults") + " injected.";
    case Verdict::damage:
      return "Damage" +
             std::string(outcome.fence == "none" ? ", as is to be expected without a fence" : "") +
             ": " + damage_of(outcome) + ".";
    case Verdict::too_little:
      return "Too little happened to say anything: " +
             counted(injected(outcome), "fault", "faults") + ", " +
             counted(outcome.cycles, "full cycle", "full cycles") + ", " +
             counted(outcome.stale_refused, "late write", "late writes") + " refused, " +
             (outcome.readers == 0
                  ? ""
                  : counted(outcome.reads_meanwhile, "read", "reads") + " meanwhile, ") +
             counted(outcome.writes, "write", "writes") +
             "; give it more time (--duration) or more cycles (--cycles).";
  }
  return {};
}

}  // namespace leasehold::drill
