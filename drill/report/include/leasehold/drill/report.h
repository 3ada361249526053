// Says what a drill found: to a person, to a program, to a build server, and as a page to keep.
//
// Everything that came from outside (names of stores, locks and processes, words of servers) is
// escaped for where it stands; bytes that are not text become U+FFFD. Nothing here blocks or fails.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/drill/history.h"
#include "leasehold/drill/outcome.h"

namespace leasehold::drill {

// "held", "damage" or "too_little": for programs.
std::string_view to_string(Verdict verdict);

enum class Mood { plain, good, bad };

// A line of the table that a person reads.
struct Row {
  std::string name;
  std::string value;
  std::string meaning;
  Mood mood = Mood::plain;
};
std::vector<Row> rows(const Outcome& outcome);

// One object. The names and types of its fields are part of the program's interface.
std::string to_json(const Outcome& outcome);

// One test suite: a case per promise, and one that fails if too little happened.
std::string to_junit(const Outcome& outcome, const History& history);

// The checker's name for a check, and what it asserts.
struct CheckDoc {
  Check check;
  std::string_view asserts;
};
std::span<const CheckDoc> check_docs();

// One page without any outside resource: verdict and table, the timeline drawn, what was broken.
// Never much above two megabytes: of a long drill, moments at which nothing went wrong are drawn
// together. `history` is sorted, and the one that Outcome::report judged.
std::string to_html(const Outcome& outcome, const History& history);

}  // namespace leasehold::drill
