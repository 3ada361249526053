// Matchers for what an examination should, or should not, have found.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "leasehold/examination.h"

namespace leasehold {

inline void PrintTo(const Finding& finding, std::ostream* out) {
  *out << finding.check;
}

}  // namespace leasehold

namespace leasehold::testing {

inline std::string told(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& it : findings) {
    text += "\n  " + std::string(to_string(it.severity)) + " " + it.check + " at " + it.where +
            ": " + it.seen;
  }
  return text;
}

// What there is under a name, worst first.
inline std::vector<Finding> findings_of(const std::vector<Finding>& all, const std::string& check) {
  std::vector<Finding> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some),
               [&](const Finding& it) { return it.check == check; });
  std::stable_sort(some.begin(), some.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return some;
}

// The worst finding of that name has this severity, and says these words somewhere.
MATCHER_P3(Finds, check, severity, words,
           std::string(check) + " is " + std::string(to_string(severity)) + " with '" + words +
               "'") {
  const std::vector<Finding> some = findings_of(arg, check);
  *result_listener << told(arg);
  if (some.empty() || some.front().severity != severity) return false;
  const Finding& worst = some.front();
  // Whoever is told of trouble is told what follows; `unseen` may have no remedy.
  const bool complete = severity == Severity::ok || !worst.consequence.empty();
  const std::string all = worst.seen + "\n" + worst.consequence + "\n" + worst.fix;
  return complete && !worst.seen.empty() && all.find(words) != std::string::npos;
}

// It was looked at, whatever a busy machine made of it.
MATCHER_P(Measures, check, "has measured " + std::string(check)) {
  const std::vector<Finding> some = findings_of(arg, check);
  *result_listener << told(arg);
  return !some.empty() && some.front().severity != Severity::unseen;
}

inline auto is_ok(const std::string& check) {
  return Finds(check, Severity::ok, std::string());
}

}  // namespace leasehold::testing
