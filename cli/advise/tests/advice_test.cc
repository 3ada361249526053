// The decision path as data: complete, and every leaf where it should be.
#include "cli/advise/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "leasehold/url.h"

namespace leasehold::cli {
namespace {

using ::testing::HasSubstr;

// "harmless=no idempotent=yes" as answers.
Answers answers_of(const std::string& text) {
  Answers answers;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    answers[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  return answers;
}

// Every way through the questions to a recommendation.
void visit(Answers answers, std::vector<Walk>& ends) {
  const Walk walked = walk(answers);
  if (!walked.open) {
    ends.push_back(walked);
    return;
  }
  for (const Choice& choice : walked.open->choices) {
    answers[std::string(walked.open->flag)] = choice.word;
    visit(answers, ends);
  }
}
std::vector<Walk> all_ways() {
  std::vector<Walk> ends;
  visit({}, ends);
  return ends;
}

struct Expected {
  std::string answers;
  std::string leaf;
};

TEST(Advice, EveryWayEndsWhereItShould) {
  const std::string waste = "harmless=yes throughput=yes ";
  const std::string repeat = "harmless=no idempotent=yes throughput=yes ";
  const std::string fenced = "harmless=no idempotent=no fence=yes throughput=yes ";
  const std::string bare = "harmless=no idempotent=no fence=no ";
  const Expected table[] = {
      {"harmless=yes throughput=no", "no-lock"},
      {waste + "machines=one", "run-local"},
      {waste + "machines=many store=sqlite", "pin"},
      {waste + "machines=many store=postgres", "run-shared"},
      {waste + "machines=many store=redis", "run-shared"},
      {waste + "machines=many store=etcd", "run-shared"},
      {waste + "machines=many store=zookeeper", "run-shared"},
      {waste + "machines=many store=none", "pin"},
      {"harmless=no idempotent=yes throughput=no", "idempotency-key"},
      {repeat + "machines=one", "once-local"},
      {repeat + "machines=many store=sqlite", "pin"},
      {repeat + "machines=many store=postgres", "run-shared"},
      {repeat + "machines=many store=redis", "run-shared"},
      {repeat + "machines=many store=etcd", "run-shared"},
      {repeat + "machines=many store=zookeeper", "run-shared"},
      {repeat + "machines=many store=none", "pin"},
      {"harmless=no idempotent=no fence=yes throughput=no", "compare-and-set"},
      {fenced + "machines=one", "fenced-local"},
      {fenced + "machines=many store=sqlite", "compare-and-set-no-store"},
      {fenced + "machines=many store=postgres", "fenced-shared"},
      {fenced + "machines=many store=redis", "claim"},
      {fenced + "machines=many store=etcd", "fenced-shared"},
      {fenced + "machines=many store=zookeeper", "fenced-shared"},
      {fenced + "machines=many store=none", "compare-and-set-no-store"},
      {bare + "machines=one", "flock"},
      {bare + "machines=many store=sqlite", "single-owner"},
      {bare + "machines=many store=postgres", "outbox"},
      {bare + "machines=many store=redis", "single-owner"},
      {bare + "machines=many store=etcd", "single-owner"},
      {bare + "machines=many store=zookeeper", "single-owner"},
      {bare + "machines=many store=none", "single-owner"},
  };
  std::set<std::string_view> reached;
  for (const Expected& expected : table) {
    const Walk walked = walk(answers_of(expected.answers));
    ASSERT_TRUE(walked.found) << expected.answers;
    EXPECT_EQ(walked.found->id, expected.leaf) << expected.answers;
    reached.insert(walked.found->id);
  }
  EXPECT_EQ(all_ways().size(), std::size(table)) << "a way that this table does not know";
  EXPECT_EQ(reached.size(), recommendations().size()) << "a leaf that nobody can reach";
}

TEST(Advice, EveryNodeAnswersItsWholeQuestionAndLeadsSomewhere) {
  std::set<std::string_view> ids;
  for (const Recommendation& one : recommendations()) EXPECT_TRUE(ids.insert(one.id).second);
  for (const Node& node : nodes()) EXPECT_TRUE(ids.insert(node.id).second) << node.id;
  for (const Node& node : nodes()) {
    std::vector<std::string_view> words;
    for (const Answer& answer : node.answers) {
      words.push_back(answer.word);
      EXPECT_TRUE(ids.contains(answer.next)) << node.id << " leads to " << answer.next;
    }
    std::vector<std::string_view> choices;
    for (const Choice& choice : question(node.flag).choices) choices.push_back(choice.word);
    EXPECT_EQ(words, choices) << node.id;
  }
}

TEST(Advice, AsksNothingTwiceOnOneWay) {
  for (const Walk& walked : all_ways()) {
    std::set<std::string_view> asked;
    for (const Step& step : walked.path) EXPECT_TRUE(asked.insert(step.flag).second) << step.flag;
  }
}

TEST(Advice, FillsInTheStoreAndLeavesNoGap) {
  for (const Walk& walked : all_ways()) {
    EXPECT_THAT(walked.commands(), ::testing::Not(HasSubstr("{"))) << walked.found->id;
    const bool names_store = walked.commands().find("--store ") != std::string::npos;
    const bool asked = walked.path.back().flag == "store";
    if (names_store) {
      EXPECT_TRUE(asked) << walked.found->id;
      EXPECT_THAT(walked.commands(),
                  HasSubstr("--store " + std::string(walked.path.back().answer) + "://"));
    }
  }
}

TEST(Advice, AddressesAreOfTheirStore) {
  for (const StoreHint& hint : store_hints()) {
    const auto url = Url::parse(hint.url);
    ASSERT_TRUE(url) << hint.url;
    EXPECT_EQ(url->scheme, hint.word);
    EXPECT_FALSE(url->hosts.empty());
  }
}

TEST(Advice, WarnsAboutTheStoreOnlyWhereItIsUsed) {
  const std::string many = "harmless=no idempotent=no fence=yes throughput=yes machines=many ";
  EXPECT_THAT(walk(answers_of(many + "store=postgres")).beware(), HasSubstr("standbys"));
  EXPECT_THAT(
      walk(answers_of("harmless=no idempotent=no fence=no machines=many store=etcd")).beware(),
      ::testing::Not(HasSubstr("etcd")));
}

TEST(Advice, EveryLeafHasItsReasonItsLimitAndAPageThatExists) {
  for (const Recommendation& one : recommendations()) {
    EXPECT_FALSE(one.title.empty() || one.why.empty() || one.beware.empty()) << one.id;
    EXPECT_FALSE(one.commands.empty() && one.sql.empty()) << one.id;
    const auto page = std::filesystem::path(LEASEHOLD_SOURCES) / one.read;
    EXPECT_TRUE(std::filesystem::exists(page)) << page;
  }
}

// The examples of the documentation are compiled and run by a test; so these are too.
TEST(Advice, CodeIsInTheDocumentation) {
  std::ifstream file(LEASEHOLD_SOURCES "/docs/advise.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  int snippets = 0;
  for (const Recommendation& one : recommendations()) {
    if (one.cpp.empty()) continue;
    ++snippets;
    EXPECT_THAT(page, HasSubstr("```cpp\n" + std::string(one.cpp) + "```")) << one.id;
  }
  EXPECT_EQ(snippets, 2);
}

TEST(Advice, TellsWhatWasNotLookedAt) {
  const Walk walked = walk(answers_of("harmless=yes throughput=no store=redis machines="));
  EXPECT_EQ(walked.unused, std::vector<std::string>{"store"});
  EXPECT_TRUE(walk(answers_of("harmless=yes throughput=no")).unused.empty());
}

}  // namespace
}  // namespace leasehold::cli
