// Shared locks, permits and notes, as a user sees them.
#include <nlohmann/json.hpp>

#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;

constexpr int kWrongInput = 64;
constexpr int kBusy = 75;

class ModesTest : public CliTest {
 protected:
  Child hold(Words options) const {
    options.insert(options.begin(), "gpu");
    return start_ready(run_shell(std::move(options), "echo ready; read line"));
  }
  json shown() const { return json::parse(leasehold({"show", "gpu", "--json"}).out).at("lock"); }
  // One sentence, and nothing is taken.
  void expect_refused(Words words, const std::string& why) const {
    const Finished refused = leasehold(words);
    EXPECT_EQ(refused.status, kWrongInput) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(why));
    EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
  }
};

TEST_F(ModesTest, ThoseWhoShareRunTogetherAndKeepOthersOut) {
  Child one = hold({"--shared", "--owner", "one"});
  Child two = hold({"--shared", "--owner", "two"});
  EXPECT_EQ(leasehold({"run", "gpu", "--", "true"}).status, kBusy);
  EXPECT_THAT(leasehold({"ls"}).out, ContainsRegex("\ngpu +shared by 2 +one and 1 more +1 "));
  const json lock = shown();
  EXPECT_EQ(lock.at("state"), "held");
  ASSERT_EQ(lock.at("holders").size(), 2u);
  EXPECT_EQ(lock.at("holder"), lock.at("holders")[0]);
  EXPECT_EQ(lock.at("holders")[1].at("owner"), "two");
  EXPECT_EQ(lock.at("holders")[1].at("mode"), "shared");
  EXPECT_TRUE(lock.at("holders")[1].at("slot").is_null());
  EXPECT_THAT(leasehold({"show", "gpu"}).out,
              ContainsRegex("state +held, shared by 2\nholder +one\n(.*\n)*holder +two"));
}

TEST_F(ModesTest, OneOfSeveralIsTakenAwayByItsRequest) {
  Child one = hold({"--shared", "--owner", "one"});
  Child two = hold({"--shared", "--owner", "two"});
  expect_refused({"release", "gpu", "--force"}, "is held by 2; say from whom");
  const std::string request = shown().at("holders")[1].at("request");
  const Finished taken = leasehold({"release", "gpu", "--force", "--request", request});
  EXPECT_EQ(taken.status, 0) << taken.err;
  EXPECT_THAT(taken.out, HasSubstr("from two (request " + request));
  EXPECT_EQ(shown().at("holders").size(), 1u);
}

TEST_F(ModesTest, APermitHasASlotOfItsOwn) {
  const Words command = {"run", "gpu", "--permits", "2", "--", "sh", "-c", "echo $LEASEHOLD_SLOT"};
  EXPECT_EQ(leasehold(command).out, "0\n");
  Child one = hold({"--permits", "2"});
  EXPECT_EQ(leasehold(command).out, "1\n");
  EXPECT_THAT(leasehold({"ls"}).out, ContainsRegex("\ngpu +1 of 2 "));
  Child two = hold({"--permits", "2"});
  EXPECT_EQ(leasehold(command).status, kBusy);
  EXPECT_EQ(shown().at("holders")[1].at("slot"), 1);
  EXPECT_EQ(shown().at("holders")[1].at("permits"), 2);
  expect_refused({"run", "gpu", "--permits", "3", "--", "true"}, "has 2 permits");
  expect_refused({"run", "gpu", "--", "true"}, "has 2 permits, and exclusive was asked for");
  EXPECT_THAT(leasehold({"run", "x", "--", "env"}).out, Not(HasSubstr("LEASEHOLD_SLOT")));
}

TEST_F(ModesTest, ASlotOfAnOuterRunDoesNotReachAnInnerOne) {
  EXPECT_THAT(
      leasehold({"run", "gpu", "--permits", "2", "--", LEASEHOLD_PROGRAM, "run", "x", "--", "env"})
          .out,
      Not(HasSubstr("LEASEHOLD_SLOT")));
}

TEST_F(ModesTest, PermitsAreSetAndCleared) {
  const Finished set = leasehold({"permits", "set", "gpu", "3"});
  EXPECT_EQ(set.status, 0) << set.err;
  EXPECT_EQ(shown().at("permits"), 3);
  EXPECT_THAT(leasehold({"ls"}).out, ContainsRegex("\ngpu +0 of 3 "));
  expect_refused({"run", "gpu", "--permits", "2", "--", "true"}, "which its operator has set");
  EXPECT_EQ(leasehold({"run", "gpu", "--permits", "3", "--", "true"}).status, 0);
  EXPECT_EQ(leasehold({"permits", "clear", "gpu"}).status, 0);
  Child holder = hold({});
  expect_refused({"permits", "set", "gpu", "3"}, "is in use without permits (exclusive)");
}

TEST_F(ModesTest, WrongNumbersAndNotesAreRefused) {
  for (const char* number : {"0", "-1", "x", "10001", "1.5", ""}) {
    expect_refused({"run", "gpu", "--permits", number, "--", "true"}, "--permits");
    expect_refused({"permits", "set", "--", "gpu", number}, "whole number from 1 to 10000");
  }
  expect_refused({"permits", "set", "gpu"}, "N");
  expect_refused({"run", "gpu", "--shared", "--permits", "2", "--", "true"}, "together");
  for (const char* mode : {"--shared", "--permits=2"}) {
    expect_refused({"run", "gpu", mode, "--once", "today", "--", "true"}, "beside each other");
  }
  expect_refused({"run", "gpu", "--note", std::string(1025, 'x'), "--", "true"}, "1024");
  expect_refused({"run", "gpu", "--note", "a\nb", "--", "true"}, "control character");
  EXPECT_THAT(leasehold({"ls"}).out, Not(HasSubstr("gpu")));
}

TEST_F(ModesTest, ANoteIsShown) {
  Child holder = hold({"--note", "10.0.0.7:9000"});
  EXPECT_THAT(leasehold({"show", "gpu"}).out, ContainsRegex("\nnote +10.0.0.7:9000\n"));
  EXPECT_EQ(shown().at("holder").at("note"), "10.0.0.7:9000");
  Child next = start(run_shell({"gpu", "--wait", "1m", "--note", "next"}, "echo ready; read line"));
  while (shown().at("waiters").empty()) {
  }
  EXPECT_EQ(shown().at("waiters")[0].at("note"), "next");
}

TEST_F(ModesTest, LsHasAColumnForNotesIfSomebodyHasOne) {
  const auto listed = [&] { return leasehold({"ls"}).out; };
  ASSERT_EQ(leasehold({"run", "free", "--", "true"}).status, 0);
  Child one = hold({"--shared", "--owner", "one"});
  EXPECT_THAT(listed(), AllOf(HasSubstr("  WAITERS\n"), Not(HasSubstr("NOTE"))));
  Child two = hold({"--shared", "--note", "10.0.0.7:9000"});
  EXPECT_THAT(listed(), AllOf(HasSubstr("  WAITERS  NOTE\n"), ContainsRegex("\nfree [^\n]* +-\n"),
                              ContainsRegex("\ngpu [^\n]* one and 1 more [^\n]* - and 1 more\n")));
  Child other = start_ready(run_shell({"other", "--note", "begin" + std::string(200, 'x') + "end"},
                                      "echo ready; read line"));
  EXPECT_THAT(listed(), ContainsRegex("\nother [^\n]* beginx{200}end\n"));
  EXPECT_THAT(on_terminal(110, {"ls"}), ContainsRegex("\nother [^\n]* beginx*…x*end"));
}

}  // namespace
}  // namespace leasehold::cli
