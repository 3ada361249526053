#include "cli/doctor/report.h"

#include <algorithm>
#include <array>

#include "cli/command/json.h"
#include "cli/command/output.h"
#include "cli/command/text.h"

namespace leasehold::cli {
namespace {

constexpr std::array kWorstFirst = {Severity::danger, Severity::warning, Severity::unseen,
                                    Severity::note, Severity::ok};
constexpr std::size_t kIndent = 10;

Colour colour_of(Severity severity) {
  switch (severity) {
    case Severity::danger:
      return Colour::red;
    case Severity::warning:
      return Colour::yellow;
    case Severity::unseen:
      return Colour::bold;
    case Severity::note:
      return Colour::none;
    case Severity::ok:
      return Colour::green;
  }
  return Colour::none;
}

std::string label(Severity severity) {
  std::string name(to_string(severity));
  const std::size_t rest = kIndent - name.size();
  return coloured(colour_of(severity), name) + std::string(rest, ' ');
}

std::string paragraph(const std::string& text) {
  return wrapped(visible(text), kIndent) + "\n";
}

// A store of one place is named in the last line, and not again in every entry.
bool is_the_store(const std::string& where, const DiagnosisReport& report) {
  const bool one_place = report.store.find(',') == std::string::npos;
  return one_place && report.store.find(where) != std::string::npos;
}

std::string entry(const Finding& finding, const DiagnosisReport& report) {
  const std::string indent(kIndent, ' ');
  const std::string at = is_the_store(finding.where, report) ? "" : " at " + finding.where;
  std::string text = label(finding.severity) + paragraph(finding.check + at + ": " + finding.seen);
  if (!finding.consequence.empty()) text += indent + paragraph(finding.consequence);
  if (!finding.fix.empty()) text += indent + paragraph("Fix: " + finding.fix);
  return text;
}

std::size_t count_of(const DiagnosisReport& report, Severity severity) {
  return static_cast<std::size_t>(
      std::count_if(report.findings.begin(), report.findings.end(),
                    [&](const Finding& it) { return it.severity == severity; }));
}

std::string summary(const DiagnosisReport& report) {
  std::string text;
  for (const Severity severity : kWorstFirst) {
    text += (text.empty() ? "" : ", ") + std::to_string(count_of(report, severity)) + " " +
            std::string(to_string(severity));
  }
  return text;
}

Json finding_of(const Finding& finding) {
  return {{"check", finding.check},
          {"severity", std::string(to_string(finding.severity))},
          {"where", finding.where},
          {"seen", finding.seen},
          {"consequence", finding.consequence},
          {"fix", finding.fix}};
}

}  // namespace

std::string doctor_text(const DiagnosisReport& report) {
  std::string text;
  for (const Severity severity : kWorstFirst) {
    for (const Finding& finding : report.findings) {
      if (finding.severity == severity) text += entry(finding, report);
    }
  }
  return text + "\n" + visible(report.store) +
         (report.fence ? " and " + visible(*report.fence) : "") + ": " + summary(report) + "\n";
}

std::string doctor_json(const DiagnosisReport& report) {
  Json findings = Json::array();
  for (const Finding& finding : report.findings) findings.push_back(finding_of(finding));
  Json counts = Json::object();
  for (const Severity severity : kWorstFirst) {
    counts[std::string(to_string(severity))] = count_of(report, severity);
  }
  const Json guarantee =
      report.traits ? Json(std::string(to_string(report.traits->guarantee))) : Json(nullptr);
  const Json all = {
      {"store", report.store},  {"fence", report.fence ? Json(*report.fence) : Json(nullptr)},
      {"guarantee", guarantee}, {"worst", std::string(to_string(report.worst()))},
      {"counts", counts},       {"findings", findings}};
  return json_text(all);
}

}  // namespace leasehold::cli
