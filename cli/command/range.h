// Which values an option takes, both ends included.
#pragma once

#include <concepts>
#include <string>

#include "leasehold/time.h"

namespace leasehold::cli {

// So that it can be read again: "1500ms", "30s", "24h", "0"; "64".
std::string written(Millis span);
template <std::integral Number>
std::string written(Number number) {
  return std::to_string(number);
}

template <class Value>
struct Range {
  Value least;
  Value most;

  bool has(const Value& value) const { return value >= least && value <= most; }
};

// "100ms to 24h", "at least 1" or "at most 5m"; empty if it is `all` that can be written.
template <class Value>
std::string words_of(const Range<Value>& range, const Range<Value>& all) {
  const bool from_least = range.least <= all.least;
  if (range.most >= all.most) return from_least ? "" : "at least " + written(range.least);
  if (from_least) return "at most " + written(range.most);
  return written(range.least) + " to " + written(range.most);
}

}  // namespace leasehold::cli
