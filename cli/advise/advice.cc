#include "cli/advise/advice.h"

#include <algorithm>

namespace leasehold::cli {
namespace {

template <class Item, class Match>
const Item* find(std::span<const Item> items, const Match& match) {
  const auto found = std::find_if(items.begin(), items.end(), match);
  return found == items.end() ? nullptr : &*found;
}

const Node* node_of(std::string_view id) {
  return find(nodes(), [&](const Node& it) { return it.id == id; });
}

const Recommendation* recommendation_of(std::string_view id) {
  return find(recommendations(), [&](const Recommendation& it) { return it.id == id; });
}

const StoreHint* hint_of(const Walk& walk) {
  const auto step =
      find(std::span<const Step>(walk.path), [](const Step& it) { return it.flag == "store"; });
  if (!step) return nullptr;
  return find(store_hints(), [&](const StoreHint& it) { return it.word == step->answer; });
}

std::string_view word_of(const Answers& answers, std::string_view flag) {
  const auto given = answers.find(flag);
  return given == answers.end() ? std::string_view() : given->second;
}

Step step_of(const Question& asked, std::string_view word) {
  const auto* choice = find(asked.choices, [&](const Choice& it) { return it.word == word; });
  return {asked.flag, choice->word, choice->meaning};
}

}  // namespace

const Question& question(std::string_view flag) {
  return *find(questions(), [&](const Question& it) { return it.flag == flag; });
}

Walk walk(const Answers& answers) {
  Walk walk;
  const Node* at = &nodes().front();
  while (at) {
    const Question& asked = question(at->flag);
    const std::string_view word = word_of(answers, at->flag);
    const auto* answer = find(at->answers, [&](const Answer& it) { return it.word == word; });
    if (!answer) {
      walk.open = &asked;
      return walk;
    }
    walk.path.push_back(step_of(asked, word));
    walk.found = recommendation_of(answer->next);
    at = node_of(answer->next);
  }
  for (const auto& [flag, word] : answers) {
    const bool used = std::any_of(walk.path.begin(), walk.path.end(),
                                  [&flag = flag](const Step& step) { return step.flag == flag; });
    if (!used && !word.empty()) walk.unused.push_back(flag);
  }
  return walk;
}

std::string Walk::commands() const {
  constexpr std::string_view kPlace = "{url}";
  std::string text(found->commands);
  const StoreHint* hint = hint_of(*this);
  const std::size_t place = text.find(kPlace);
  if (hint && place != std::string::npos) text.replace(place, kPlace.size(), hint->url);
  return text;
}

std::string Walk::beware() const {
  std::string text(found->beware);
  const bool uses_store = found->commands.find("{url}") != std::string_view::npos;
  const StoreHint* hint = uses_store ? hint_of(*this) : nullptr;
  return hint ? text + " " + std::string(hint->beware) : text;
}

}  // namespace leasehold::cli
