// Help, manual page and completions: made from the parser's own tree.
#include <sstream>

#include "cli/command/meant_word.h"
#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

using TextsTest = CliTest;

const Words kCommands = {"run",   "elect",  "partitions", "hold",       "ls",
                         "show",  "watch",  "release",    "fence",      "outbox",
                         "probe", "advise", "doctor",     "completion", "version"};

TEST(MeantWord, IsTheOnlyOneNearby) {
  const Words known = {"run", "ls", "show", "release", "fence", "once", "--ttl", "--wait", "-v"};
  EXPECT_EQ(meant_word("--tll", known), "--ttl");
  EXPECT_EQ(meant_word("--tlt", known), "--ttl") << "swapped";
  EXPECT_EQ(meant_word("--wiats", known), "--wait") << "swapped, and one too many";
  EXPECT_EQ(meant_word("relese", known), "release") << "one is missing";
  EXPECT_EQ(meant_word("rnu", known), "run");
  EXPECT_EQ(meant_word("list", known), "ls") << "two too many";
  EXPECT_EQ(meant_word("fnce", known), std::nullopt) << "fence or once";
  EXPECT_EQ(meant_word("relxxxe", known), std::nullopt) << "three changed";
  EXPECT_EQ(meant_word("xx", known), std::nullopt) << "nothing of it is in 'ls'";
  EXPECT_EQ(meant_word("-V", known), std::nullopt) << "one letter is like any other";
  EXPECT_EQ(meant_word("-ttl", known), "--ttl") << "only a dash is missing";
  for (const char* none : {"", "-", "--", "---"}) {
    EXPECT_EQ(meant_word(none, known), std::nullopt) << none;
  }
}

TEST_F(TextsTest, HelpHasAnExampleEach) {
  const Finished root = leasehold({"--help"});
  EXPECT_EQ(root.status, 0);
  EXPECT_THAT(root.out, AllOf(HasSubstr("Examples:"), HasSubstr("Exit status:")));
  EXPECT_THAT(leasehold({"ls", "--help"}).out,
              HasSubstr("the store or the resource is not available"));
  EXPECT_THAT(leasehold({"release", "--help"}).out, HasSubstr("the lock is not held"));
  EXPECT_THAT(leasehold({"fence", "read", "--help"}).out, HasSubstr("refused"));
  EXPECT_THAT(leasehold({"ls", "--help"}).out, Not(HasSubstr("run"))) << "another command's";
  EXPECT_THAT(leasehold({"fence", "adopt", "--help"}).out,
              HasSubstr("adopt URL RESOURCE --lineage LINEAGE --at-least N [OPTIONS]"));
  for (const std::string& name : kCommands) {
    EXPECT_THAT(root.out, HasSubstr("\n  " + name + " "));
    const Finished help = leasehold({name, "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.out, HasSubstr("Usage: leasehold " + name)) << name;
    EXPECT_THAT(help.out, HasSubstr("Examples:")) << name;
    EXPECT_EQ(leasehold({name, "-h"}).out, help.out);
  }
  for (const char* name :
       {"show", "install", "adopt", "reset", "remove", "enter", "read", "write"}) {
    EXPECT_THAT(
        leasehold({"fence", name, "--help"}).out,
        AllOf(HasSubstr(std::string("Usage: leasehold fence ") + name), HasSubstr("Examples:")));
  }
  for (const char* name : {"install", "relay", "show", "retry", "skip"}) {
    EXPECT_THAT(
        leasehold({"outbox", name, "--help"}).out,
        AllOf(HasSubstr(std::string("Usage: leasehold outbox ") + name), HasSubstr("Examples:")));
  }
}

TEST_F(TextsTest, HelpIsAlsoAWord) {
  EXPECT_EQ(leasehold({"help"}).out, leasehold({"--help"}).out);
  EXPECT_EQ(leasehold({"help", "run"}).out, leasehold({"run", "--help"}).out);
  const Finished nested = leasehold({"help", "fence", "show"});
  EXPECT_EQ(nested.out, leasehold({"fence", "show", "--help"}).out);
  EXPECT_EQ(nested.status, 0);
}

TEST_F(TextsTest, HelpListsTheExitStatusesThatApply) {
  const Words all = {"0",  "1",  "3",  "64", "65",  "66",  "69",    "70", "74",
                     "75", "76", "77", "78", "126", "127", "128+n", "130"};
  const auto listed = [&](Words words) {
    words.push_back("--help");
    const std::string help = leasehold(words).out;
    Words found;
    for (const std::string& status : all) {
      if (help.find("\n  " + status + " ") != std::string::npos) found.push_back(status);
    }
    return found;
  };
  const std::string root = leasehold({"--help"}).out;
  EXPECT_EQ(listed({}),
            (Words{"0", "64", "69", "70", "74", "75", "76", "77", "126", "127", "128+n", "130"}));
  EXPECT_THAT(root, HasSubstr("\n  1, 3, 65, 66, 78 "));
  EXPECT_LE(std::count(root.begin(), root.end(), '\n'), 60) << "on one page";
  EXPECT_EQ(listed({"run"}),
            (Words{"0", "64", "69", "70", "74", "75", "76", "77", "126", "127", "128+n", "130"}));
  EXPECT_EQ(listed({"hold"}), (Words{"0", "64", "69", "70", "74", "75", "76", "77", "130"}));
  EXPECT_EQ(listed({"outbox", "relay"}),
            (Words{"0", "64", "65", "66", "69", "70", "74", "75", "76", "77"}));
  EXPECT_EQ(listed({"doctor"}), (Words{"0", "64", "69", "70", "74", "77", "78"}));
  EXPECT_EQ(listed({"probe"}), (Words{"0", "64", "70", "74", "130"}));
  EXPECT_EQ(listed({"demo"}), (Words{"0", "64", "70", "74", "130"}));
  for (const char* name : {"advise", "completion", "version"}) {
    EXPECT_EQ(listed({name}), (Words{"0", "64", "70", "74"})) << name;
  }
}

TEST_F(TextsTest, HelpSaysEachMeaningOnce) {
  const auto words_of = [&](const std::string& script) {
    return shell(script + " | tr -s ' \\n' ' '").out;
  };
  const std::string wrong = " 64 wrong input: a flag, name, URL or duration; ";
  EXPECT_THAT(words_of("leasehold --help"), HasSubstr(" 64 wrong input 69 "));
  EXPECT_THAT(words_of("leasehold run --help"),
              HasSubstr(wrong + "a --once key used with another command 69 "));
  EXPECT_THAT(words_of("leasehold run --help"), HasSubstr("; or an unknown kind of store 126 "));
}

TEST_F(TextsTest, HelpOfAStoreSaysWhatAShellWouldCut) {
  const std::string help = shell("leasehold ls --help | tr -s ' \\n' ' '").out;
  EXPECT_THAT(help, HasSubstr("in a shell, put a URL with ? or & in quotes"));
}

TEST_F(TextsTest, HelpFitsATerminal) {
  for (const char* name : {"run", "hold", "probe", "advise", "doctor"}) {
    std::istringstream lines(leasehold({name, "--help"}).out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST_F(TextsTest, HelpUsesTheWidthOfTheTerminal) {
  const auto longest = [&](unsigned short columns) {
    std::istringstream lines(on_terminal(columns, {"probe", "--help"}));
    std::size_t most = 0;
    for (std::string line; std::getline(lines, line);) {
      const bool example = line.starts_with("  leasehold ") || line.starts_with("  # ");
      if (!example) most = std::max(most, line.size());
    }
    return most;
  };
  EXPECT_LE(longest(60), 60u);
  EXPECT_GT(longest(110), 90u);
  EXPECT_LE(longest(300), 120u) << "longer lines are hard to read";
}

TEST_F(TextsTest, ManualPageRendersWithoutWarnings) {
  EXPECT_EQ(leasehold({"man"}).out, shell("cat " LEASEHOLD_MAN_PAGE).out);
  const Finished rendered = shell("groff -man -ww -Tutf8 -P-cbou " LEASEHOLD_MAN_PAGE);
  EXPECT_EQ(rendered.err, "");
  for (const std::string& name : kCommands) {
    EXPECT_THAT(rendered.out, HasSubstr("leasehold " + name));
  }
  EXPECT_THAT(rendered.out, AllOf(HasSubstr("--at-least"), HasSubstr("EXIT STATUS"),
                                  HasSubstr("128+n"), HasSubstr("sqlite:/var/lib/app/locks.db")));
}

TEST_F(TextsTest, CompletionScriptsOfBashParse) {
  EXPECT_EQ(shell("leasehold completion bash > " + path("c") + " && bash -n " + path("c")).err, "");
  for (const char* other : {"zsh", "fish"}) {
    const Finished script = leasehold({"completion", other});
    EXPECT_EQ(script.status, 0);
    EXPECT_THAT(script.out, AllOf(HasSubstr("at-least"), HasSubstr("release"), HasSubstr("adopt")));
  }
}

TEST_F(TextsTest, BashCompletes) {
  for (const char* name : {"my lock", "odd \"quoted\"", "odd\\name", "odd \u202Etfel"}) {
    ASSERT_EQ(leasehold({"run", name, "--", "true"}).status, 0);
  }
  const auto complete = [&](const std::string& words) {
    return finish({"bash", "--norc", "-c",
                   "source <(leasehold completion bash); COMP_WORDS=(" + words +
                       "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _leasehold; "
                       "printf '%s\\n' \"${COMPREPLY[@]}\""})
        .out;
  };
  EXPECT_EQ(complete("leasehold r"), "run\nrelease\nrotate-store-id\n");
  EXPECT_THAT(complete("leasehold ''"), Not(HasSubstr("man\n")));
  EXPECT_EQ(complete("leasehold run --on"), "--on-lost\n--once\n--once-keeps\n");
  EXPECT_EQ(complete("leasehold run x --on-lost t"), "term\n");
  EXPECT_EQ(complete("leasehold run x --ttl ''"), "\n") << "a duration cannot be guessed";
  EXPECT_EQ(complete("leasehold run x --store sq"), "sqlite:\n");
  EXPECT_EQ(complete("leasehold fence show fi"), "file:\n");
  EXPECT_EQ(complete("leasehold fence a"), "adopt\nadmit\n");
  EXPECT_EQ(complete("leasehold fence adopt --l"), "--lineage\n");
  EXPECT_EQ(complete("leasehold completion z"), "zsh\n");
  EXPECT_EQ(complete("leasehold show my"), "my\\ lock\n");
  EXPECT_EQ(complete("leasehold show odd"), "\n") << "not as another name";
  EXPECT_THAT(complete("leasehold run x -- base64"), HasSubstr("base64\n"));
  EXPECT_EQ(complete("leasehold fence show --f"), "\n");
}

TEST_F(TextsTest, EveryOptionOfTheParserIsCompleted) {
  const std::string script = leasehold({"completion", "bash"}).out;
  std::istringstream lines(leasehold({"run", "--help"}).out);
  int options = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  --")) continue;
    const std::string name = line.substr(2, line.find_first_of(" ,", 2) - 2);
    EXPECT_THAT(script, HasSubstr(name));
    ++options;
  }
  EXPECT_GE(options, 12);
}

}  // namespace
}  // namespace leasehold::cli
