#include <nlohmann/json.hpp>

#include "kit/text/visible_text.h"
#include "leasehold/drill/report.h"

namespace leasehold::drill {
namespace {

using Json = nlohmann::ordered_json;

Json faults_of(const Outcome& outcome) {
  Json faults = Json::object();
  for (const Injected& fault : outcome.faults) faults[fault.fault] = fault.times;
  return faults;
}

// Null: not judged.
Json broken_of(const Report& report) {
  Json broken = Json::object();
  for (const CheckDoc& each : check_docs()) {
    const bool judged = report.judged(each.check);
    broken[std::string(to_string(each.check))] = judged ? Json(report.count(each.check)) : Json();
  }
  return broken;
}

Json late_writes_of(const Outcome& outcome) {
  Json list = Json::array();
  for (const LateWrite& each : outcome.late_writes) {
    list.push_back({{"resource", kit::visible(each.resource)},
                    {"slot", each.slot ? Json(each.slot->number) : Json()},
                    {"token", each.token},
                    {"successor", each.successor},
                    {"answer", each.answer}});
  }
  return list;
}

Json violations_of(const Report& report) {
  Json list = Json::array();
  for (const Violation& each : report.violations) {
    list.push_back({{"check", std::string(to_string(each.check))},
                    {"sentence", kit::visible(each.sentence)},
                    {"records", each.records}});
  }
  return list;
}

}  // namespace

std::string to_json(const Outcome& outcome) {
  const Report& report = outcome.report;
  const Json json = {{"verdict", std::string(to_string(judge(outcome)))},
                     {"sentence", sentence(outcome)},
                     {"began", outcome.began},
                     {"version", outcome.version},
                     {"worker", outcome.worker},
                     {"store", outcome.store},
                     {"fence", outcome.fence},
                     {"fence_by_claim", outcome.fence_by_claim},
                     {"mode", outcome.mode},
                     {"readers", outcome.readers},
                     {"permits", outcome.permits},
                     {"partitions", outcome.partitions},
                     {"faults", faults_of(outcome)},
                     {"seed", outcome.seed},
                     {"duration_ns", outcome.duration.count()},
                     {"workers", outcome.workers},
                     {"locks", outcome.locks},
                     {"ttl_ms", outcome.ttl.count()},
                     {"cycles", outcome.cycles},
                     {"unfinished_cycles", outcome.unfinished},
                     {"overlaps", report.overlaps.count},
                     {"overlaps_before_deadline", report.overlaps.before_deadline},
                     {"stale_refused", outcome.stale_refused},
                     {"stale_accepted", outcome.stale_accepted},
                     {"stale_unknown", outcome.stale_unknown},
                     {"late_writes", late_writes_of(outcome)},
                     {"reads_meanwhile", outcome.reads_meanwhile},
                     {"writes", outcome.writes},
                     {"updates_lost", outcome.updates_lost},
                     {"foreign_values", outcome.foreign_values},
                     {"grants", report.grants},
                     {"accepted", report.accepted},
                     {"refused", report.refused},
                     {"broken", broken_of(report)},
                     {"violations", violations_of(report)},
                     {"longest_idle_ns", report.liveness.longest_idle},
                     {"longest_after_fault_ns", report.liveness.longest_after_fault},
                     {"notes", outcome.notes}};
  // What another program wrote may not be UTF-8: replaced, never an exception.
  return kit::json_shown(json.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace leasehold::drill
