#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

using Strings = std::vector<std::string>;

class DemoTest : public CliTest {
 protected:
  DemoTest() { std::filesystem::create_directory(temporary()); }

  std::string temporary() const { return path("tmp"); }

  // Everything of the demo names this test's own temporary folder.
  process::Command demo(const std::string& locale = "C.UTF-8") const {
    process::Command what = command({LEASEHOLD_PROGRAM, "demo"});
    what.environment.emplace_back("TMPDIR", temporary());
    what.environment.emplace_back("LC_ALL", locale);
    what.in = process::Null{};
    what.out = Piped{};
    what.err = Piped{};
    what.placement = process::Placement::own_group;
    return what;
  }
  static Child started(const process::Command& what) {
    auto child = Child::start(what);
    EXPECT_TRUE(child);
    return std::move(*child);
  }

  Strings files_left() const {
    Strings left;
    for (const auto& entry : std::filesystem::directory_iterator(temporary())) {
      left.push_back(entry.path());
    }
    return left;
  }

  // Command lines of processes that work in the temporary folder.
  Strings processes_left() const {
    Strings left;
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
      std::ifstream file(entry.path() / "cmdline");
      std::ostringstream read;
      read << file.rdbuf();  // a process that ends meanwhile has no words
      std::string words = read.str();
      std::replace(words.begin(), words.end(), '\0', ' ');
      if (words.find(temporary()) != std::string::npos) left.push_back(words);
    }
    return left;
  }

  void expect_nothing_left() const {
    EXPECT_EQ(files_left(), Strings{});
    EXPECT_EQ(processes_left(), Strings{});
  }

  void expect_end_by_signal_after(const std::string& text, int number) {
    Child child = started(demo());
    const std::string seen = read_until(child.out().get(), text, within(kPatience));
    ASSERT_THAT(seen, HasSubstr(text));
    ASSERT_FALSE(files_left().empty());
    ASSERT_TRUE(child.signal(number));
    const Finished end = finish(std::move(child));
    EXPECT_EQ(end.status, 130);
    EXPECT_EQ(end.err, "leasehold: the demo was interrupted, and has cleaned up\n");
    expect_nothing_left();
  }
};

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const auto begin = text.find(from);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find(to, begin) - begin);
}

// The first group of each match, as numbers.
std::vector<int> numbers(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::vector<int> found;
  for (std::sregex_iterator it(text.begin(), text.end(), expression), end; it != end; ++it) {
    found.push_back(std::stoi((*it)[1]));
  }
  return found;
}

TEST_F(DemoTest, tells_the_story_in_time_and_leaves_nothing) {
  const auto start = std::chrono::steady_clock::now();
  const Finished end = finish(started(demo()));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 1min);
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.err, "");
  EXPECT_THAT(end.out, Not(HasSubstr("\033")));
  expect_nothing_left();

  const std::string race = between(end.out, "Act 1", "Act 2");
  EXPECT_THAT(race, HasSubstr("exit status 0"));
  EXPECT_THAT(race, AllOf(HasSubstr("exit status 75"), HasSubstr("'nightly' is not free")));

  const std::string bare = between(end.out, "Act 2", "Act 3");
  EXPECT_EQ(numbers(bare, "(?:┏|┣) token (\\d+)"), (std::vector{2, 3}));
  EXPECT_EQ(numbers(bare, "should be +(\\d+)"), std::vector{160});
  EXPECT_EQ(numbers(bare, "\n +is +(\\d+)"), std::vector{110});
  EXPECT_THAT(bare, AllOf(HasSubstr("50 lost"), HasSubstr("SIGSTOP")));
  EXPECT_GE(numbers(bare, "frozen (\\d+)").size(), 3u);

  const std::string fenced = between(end.out, "Act 3", "What you saw");
  EXPECT_EQ(numbers(fenced, "(?:┏|┣) token (\\d+)"), (std::vector{4, 5, 6}));
  EXPECT_EQ(numbers(fenced, "refused token (\\d+)"), std::vector{4});
  EXPECT_EQ(numbers(fenced, "its mark is (\\d+)"), std::vector{5});
  EXPECT_EQ(numbers(fenced, "should be +(\\d+)"), std::vector{160});
  EXPECT_EQ(numbers(fenced, "\n +is +(\\d+)"), std::vector{160});
  EXPECT_THAT(fenced, AllOf(HasSubstr("it said 'lost'"), Not(HasSubstr("50 lost"))));
  EXPECT_THAT(end.out, HasSubstr("token 4 was refused, because token 5 had entered"));
  EXPECT_THAT(end.out, HasSubstr(LEASEHOLD_PROGRAM " run nightly"));
}

TEST_F(DemoTest, draws_in_ascii_within_80_columns_without_a_utf8_locale) {
  const Finished end = finish(started(demo("C")));
  EXPECT_EQ(end.status, 0) << end.err;
  std::istringstream lines(end.out);
  for (std::string line; std::getline(lines, line);) {
    const bool names_the_program = line.find(LEASEHOLD_PROGRAM) != std::string::npos;
    EXPECT_TRUE(line.size() <= 80 || names_the_program) << line;
    EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c < 127; }))
        << line;
  }
}

TEST_F(DemoTest, cleans_up_when_interrupted_while_a_worker_is_frozen) {
  expect_end_by_signal_after("▓ frozen", SIGINT);
}

TEST_F(DemoTest, cleans_up_when_ended_at_the_beginning) {
  expect_end_by_signal_after("apart", SIGTERM);
}

TEST_F(DemoTest, ends_when_nobody_reads_on) {
  Child child = started(demo());
  EXPECT_THAT(read_until(child.out().get(), "SIGSTOP", within(kPatience)), HasSubstr("SIGSTOP"));
  child.out().reset();
  EXPECT_EQ(read_all(child.err().get(), within(kPatience)), "") << "as with head(1)";
  EXPECT_EQ(child.wait_for(kPatience), process::ExitStatus::exited(74));
  expect_nothing_left();
}

TEST_F(DemoTest, says_in_one_sentence_that_there_is_no_temporary_folder) {
  process::Command what = demo();
  what.environment.emplace_back("TMPDIR", path("missing"));
  const Finished end = finish(started(what));
  EXPECT_EQ(end.status, 70);
  EXPECT_THAT(end.err, ::testing::MatchesRegex("leasehold: [^\n]*temporary folder[^\n]*\n"));
}

}  // namespace
}  // namespace leasehold::cli
