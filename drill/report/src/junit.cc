#include <cstdio>

#include "leasehold/drill/report.h"
#include "markup.h"

namespace leasehold::drill {
namespace {

constexpr const char* kNotJudged = "not judged: the drill has no log of the store";

struct Case {
  std::string name;
  std::string failure;  // one line; empty: passed
  std::string details;
  std::string skipped = {};  // why it was not looked at; empty: it was
};

std::string exact_seconds(std::chrono::nanoseconds span) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", std::chrono::duration<double>(span).count());
  return text;
}

std::string times(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " time" : " times");
}

Case count_case(std::string name, std::uint64_t bad, const std::string& what) {
  return {std::move(name), bad == 0 ? "" : std::to_string(bad) + " " + what, ""};
}

Case check_case(const CheckDoc& doc, const Report& report, const History& history) {
  const std::string id(to_string(doc.check));
  Case found{id + " " + std::string(doc.asserts), "", ""};
  if (!report.judged(doc.check)) found.skipped = kNotJudged;
  if (report.count(doc.check) == 0) return found;
  found.failure = id + " was broken " + times(report.count(doc.check));
  for (const Violation& violation : report.violations) {
    if (violation.check != doc.check) continue;
    found.details += violation.sentence + "\n";
    for (const std::size_t at : violation.records) {
      if (at < history.records().size()) found.details += "  " + describe(history, at) + "\n";
    }
  }
  return found;
}

std::vector<Case> cases_of(const Outcome& outcome, const History& history) {
  std::vector<Case> all;
  all.push_back({"enough happened to say anything",
                 judge(outcome) == Verdict::too_little ? sentence(outcome) : "", ""});
  all.push_back(count_case("no stale write was accepted", outcome.stale_accepted,
                           "stale writes were accepted"));
  all.push_back(count_case("no update was lost", outcome.updates_lost, "updates were lost"));
  all.push_back(count_case("every resource holds what somebody wrote", outcome.foreign_values,
                           "resources hold what nobody wrote"));
  for (const CheckDoc& doc : check_docs()) all.push_back(check_case(doc, outcome.report, history));
  return all;
}

std::string suite_of(const Outcome& outcome) {
  std::string name = "leasehold drill: " + outcome.store + ", fence " + outcome.fence;
  if (outcome.mode != "exclusive") name += ", " + outcome.mode;
  for (const Injected& fault : outcome.faults) name += ", " + fault.fault;
  return escaped(name);
}

std::string element(const Case& one, const std::string& suite) {
  const std::string head =
      "  <testcase classname=\"" + suite + "\" name=\"" + escaped(one.name) + "\"";
  if (!one.skipped.empty()) {
    return head + ">\n    <skipped message=\"" + escaped(one.skipped) + "\"/>\n  </testcase>\n";
  }
  if (one.failure.empty()) return head + "/>\n";
  return head + ">\n    <failure message=\"" + escaped(one.failure) + "\">" +
         escaped_lines(one.details) + "</failure>\n  </testcase>\n";
}

}  // namespace

std::string to_junit(const Outcome& outcome, const History& history) {
  const auto cases = cases_of(outcome, history);
  const std::string suite = suite_of(outcome);
  std::size_t failures = 0;
  std::size_t skipped = 0;
  std::string body;
  for (const Case& one : cases) {
    failures += one.failure.empty() ? 0 : 1;
    skipped += one.skipped.empty() ? 0 : 1;
    body += element(one, suite);
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"" + suite + "\" tests=\"" +
         std::to_string(cases.size()) + "\" failures=\"" + std::to_string(failures) +
         "\" errors=\"0\" skipped=\"" + std::to_string(skipped) + "\" time=\"" +
         exact_seconds(outcome.duration) + "\">\n" + body + "  <system-out>" +
         escaped(sentence(outcome)) + "</system-out>\n</testsuite>\n";
}

}  // namespace leasehold::drill
