#include "testing/fence_cases.h"

#include <variant>

#include "testing/tokens.h"

namespace leasehold::testing {
namespace {

std::string shown(const FenceStep& step) {
  std::string text = step.writes ? "write " + step.content : "read";
  if (step.access == Access::read) text += " beside others";
  text += " with " + std::to_string(step.token.number.value()) + " of " +
          step.token.request.hex().substr(0, 1) + " by " + step.token.lineage.str().substr(0, 1);
  if (step.sequence != 0) text += " as " + std::to_string(step.sequence);
  if (step.single) text += ", single entry";
  return text;
}

FenceStep reading(std::int64_t number, char request, char store = 'a') {
  return {.token = token_of(number, request, store), .access = Access::read, .writes = false};
}

// Around the token 33 of the request 1, and its write 5 of "W".
std::vector<FenceStep> steps(const FenceWays& ways) {
  std::vector<FenceStep> all;
  for (const std::int64_t number : {32, 33, 34}) {
    all.push_back({.token = token_of(number, '1', 'b')});
    if (ways.readers) all.push_back(reading(number, '1', 'b'));
    for (const char request : {'1', '2'}) {
      if (ways.readers) all.push_back(reading(number, request));
      for (const bool writes : {false, true}) {
        for (const bool single : {false, true}) {
          all.push_back({.token = token_of(number, request), .writes = writes, .single = single});
        }
      }
    }
  }
  if (!ways.numbers) return all;
  for (const std::int64_t number : {32, 34}) {
    all.push_back({.token = token_of(number, '1'), .sequence = 4});
  }
  for (const std::int64_t sequence : {4, 5, 6}) {
    for (const char* content : {"V", "W"}) {
      for (const bool single : {false, true}) {
        all.push_back({.token = token_of(33, '1'),
                       .single = single,
                       .sequence = sequence,
                       .content = content});
      }
    }
  }
  return all;
}

}  // namespace

fence::Attempt FenceStep::attempt(const fence::Mark& mark, const FenceWays& ways) const {
  fence::Attempt attempt{
      .token = token, .access = access, .writes = writes, .single = single, .sequence = sequence};
  if (sequence != 0) {
    const bool is_last = mark.is_held_by(token) && mark.holder->sequence == sequence;
    const bool is_there = is_last && mark.holder->write == content;
    if (ways.names || (ways.compares && (is_there || !is_last))) attempt.write = content;
  } else if (writes && ways.numbers_itself) {
    attempt.sequence = (mark.is_held_by(token) ? mark.holder->sequence : 0) + 1;
  } else if (writes && !ways.knows_writes) {
    attempt.writes = false;
  }
  return attempt;
}

fence::Mark FenceRuleCase::mark(const FenceWays& ways) const {
  fence::Mark mark;
  if (adopted) mark = {.lineage = lineage_of(), .least = adopted};
  for (const FenceStep& step : before) {
    mark = std::get<fence::Enter>(fence::judge(mark, step.attempt(mark, ways))).next;
  }
  return mark;
}

std::string FenceRuleCase::str() const {
  std::string text;
  if (adopted) text += "adopted from " + std::to_string(adopted->value()) + ", ";
  for (const FenceStep& step : before) text += shown(step) + ", ";
  return text + "then " + shown(then);
}

std::vector<FenceRuleCase> fence_rule_cases(const FenceWays& ways) {
  const Token mine = token_of(33, '1');
  std::vector<std::vector<FenceStep>> befores = {
      {}, {{.token = mine, .writes = false}}, {{.token = mine}}};
  if (ways.numbers) befores.push_back({{.token = mine, .sequence = 5, .content = "W"}});
  if (ways.readers) {
    const FenceStep below{.token = token_of(31, '3')};
    befores.push_back({reading(33, '1')});
    befores.push_back({below, reading(33, '1')});
    befores.push_back({below, reading(33, '1'), reading(32, '2')});
    befores.push_back({{.token = token_of(32, '1')}, reading(33, '1')});
    befores.push_back({reading(33, '1'), {.token = mine}});
  }
  std::vector<FenceRuleCase> cases;
  for (const FenceStep& then : steps(ways)) {
    const auto adopted = TokenNumber::of(33).value();
    cases.push_back({.adopted = adopted, .before = {}, .then = then});
    if (ways.readers) {
      cases.push_back({.adopted = adopted, .before = {reading(34, '1')}, .then = then});
    }
    for (const auto& before : befores) {
      cases.push_back({.adopted = {}, .before = before, .then = then});
    }
  }
  return cases;
}

}  // namespace leasehold::testing
