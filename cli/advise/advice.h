// The decision path: questions, answers, and where they lead. Data, and a walk through it.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::cli {

struct Choice {
  std::string_view word;     // as it is typed
  std::string_view meaning;  // what it says about the work
};

struct Question {
  std::string_view flag;  // without dashes
  std::string_view text;
  std::string_view help;  // for somebody who is not sure
  std::span<const Choice> choices;
};

struct Answer {
  std::string_view word;
  std::string_view next;  // a node, or a recommendation
};

// A place on the path where a question is asked. The same question may stand at several of them.
struct Node {
  std::string_view id;
  std::string_view flag;
  std::span<const Answer> answers;  // to all choices of the question
};

struct Recommendation {
  std::string_view id;
  bool lock;  // false: you need none
  std::string_view title;
  std::string_view why;
  // Ready to use, each may be empty. In commands `./job` is your own, and {url} is the store.
  std::string_view commands;
  std::string_view sql;
  std::string_view cpp;  // a whole source file
  std::string_view beware;
  std::string_view read;  // a page of the documentation
};

// An example of an address, and what to know about this store's locks.
struct StoreHint {
  std::string_view word;
  std::string_view url;
  std::string_view beware;
};

std::span<const Question> questions();
std::span<const Node> nodes();
std::span<const Recommendation> recommendations();
std::span<const StoreHint> store_hints();

// The question of this flag; there must be one.
const Question& question(std::string_view flag);

struct Step {
  std::string_view flag;
  std::string_view answer;
  std::string_view meaning;
};

// Where the answers lead: to a question that is still open, or to a recommendation.
struct Walk {
  std::vector<Step> path;
  const Question* open = nullptr;
  const Recommendation* found = nullptr;
  std::vector<std::string> unused;  // flags that were answered and do not matter

  // Of what was found, for the store that was answered.
  std::string commands() const;
  std::string beware() const;
};

// `answers`: by flag, each one of the question's words; empty is none.
using Answers = std::map<std::string, std::string, std::less<>>;
Walk walk(const Answers& answers);

std::string advice_text(const Walk& walk);
// The names and types of the fields are part of the program's interface.
std::string advice_json(const Walk& walk);

}  // namespace leasehold::cli
