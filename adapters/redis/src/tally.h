// Counting what the nodes answered.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "quorum.h"

namespace leasehold::redis {

struct Tally {
  std::size_t yes = 0;      // `is_yes` held
  std::size_t no = 0;       // answered otherwise
  std::size_t missing = 0;  // not reached, or refused
  std::size_t unknown = 0;  // may have done it

  std::size_t answered() const { return yes + no; }
  std::size_t unanswered() const { return missing + unknown; }
};

inline Tally count(const Answers& answers, const std::function<bool(const resp::Value&)>& is_yes) {
  Tally tally;
  for (const Answer& it : answers) {
    if (it.kind == Answer::Kind::unknown) ++tally.unknown;
    if (it.kind == Answer::Kind::not_done) ++tally.missing;
    if (it.kind == Answer::Kind::given) ++(is_yes(it.value) ? tally.yes : tally.no);
  }
  return tally;
}

// "10.0.0.1:6379: cannot connect (Connection refused); ..." of the nodes that did not answer.
inline std::string complaints(const Answers& answers) {
  std::string text;
  for (const Answer& it : answers) {
    if (it.kind == Answer::Kind::given) continue;
    if (!text.empty()) text += "; ";
    text += sentence(it.error);
  }
  return text;
}

// The value that most have; the smallest of those if it is a draw.
template <class T>
std::optional<T> most_common(const std::vector<T>& values) {
  std::map<T, std::size_t> counts;
  for (const T& value : values) ++counts[value];
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == counts.end()) return std::nullopt;
  return most->first;
}

}  // namespace leasehold::redis
