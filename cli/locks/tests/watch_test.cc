// leasehold watch and leasehold ls --watch.
#include <sys/ioctl.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

using nlohmann::json;

class WatchCommandTest : public CliTest {
 protected:
  Child watch(Words words) const {
    words.insert(words.begin(), "watch");
    return start_piped(std::move(words));
  }
  // The next line without its time.
  static std::string line(Child& child) {
    const std::string text = whole_line(child);
    return text.substr(std::min(text.size(), text.find("  ") + 2));
  }
  static std::string whole_line(Child& child) {
    return read_until(child.out().get(), "\n", within(kPatience));
  }
  static int status(Child& child) {
    const auto ended = child.wait_for(kPatience);
    EXPECT_TRUE(ended) << "still running";
    return ended ? ended->shell_status() : -1;
  }
  Child hold(const std::string& lock, const std::string& note = "") const {
    return start_ready(run_shell({lock, "--owner", "me", "--note", note}, "echo ready; read line"));
  }
  static void let_go(Child& holder) {
    holder.in().reset();
    EXPECT_TRUE(holder.wait_for(kPatience));
  }
};

TEST_F(WatchCommandTest, TellsEachChangeUntilASignal) {
  Child seen = watch({"leader"});
  EXPECT_EQ(line(seen), "leader  free\n") << "before anybody has taken a lock";
  Child holder = hold("leader", "db-1:5432");
  EXPECT_EQ(line(seen), "leader  held by me, token 1, note 'db-1:5432'\n");
  let_go(holder);
  EXPECT_EQ(line(seen), "leader  free, last token 1\n");
  seen.signal(SIGTERM);
  EXPECT_EQ(status(seen), 130);
  EXPECT_EQ(errors(), "");
}

TEST_F(WatchCommandTest, TellsAPrefixForPrograms) {
  Child holder = hold("gpu/1");
  Child seen = watch({"gpu/", "--prefix", "--json"});
  const json first = json::parse(whole_line(seen));
  EXPECT_EQ(first.at("event"), "seen");
  EXPECT_EQ(first.at("lock").at("name"), "gpu/1");
  EXPECT_EQ(first.at("lock").at("holder").at("owner"), "me");
  let_go(holder);
  const json last = json::parse(whole_line(seen));
  EXPECT_EQ(last.at("lock").at("state"), "free");
  seen.signal(SIGINT);
  EXPECT_EQ(status(seen), 130);
}

TEST_F(WatchCommandTest, EndsWhenNobodyReads) {
  ASSERT_EQ(leasehold({"run", "leader", "--", "true"}).status, 0);
  const Finished ended = shell("leasehold watch leader | head -n 1");
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out, HasSubstr("leader  free, last token 1\n"));
}

TEST_F(WatchCommandTest, WrongInputIsRefused) {
  const auto says = [&](Words words, const std::string& text) {
    words.insert(words.begin(), "watch");
    const Finished ended = leasehold(std::move(words));
    EXPECT_EQ(ended.status, 64) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(text));
  };
  says({""}, "lock name");
  says({"a\nb", "--prefix"}, "lock name");
  says({"x", "--look-every", "1ms"}, "--look-every");
  says({}, "NAME");
}

TEST_F(WatchCommandTest, AFileThatIsNotThereIsAMistake) {
  EXPECT_EQ(leasehold({"watch", "x", "--store", "sqlite:" + path("none.db")}).status, 69);
}

class LsWatchTest : public WatchCommandTest {
 protected:
  Child ls(Words words) const {
    words.insert(words.begin(), {"ls", "--watch"});
    return start_piped(std::move(words));
  }
};

// A terminal of `lines` lines, on which `leasehold ls --watch` draws.
class Screen {
 public:
  Screen(process::Command ls, unsigned short lines) {
    const winsize size{lines, 120, 0, 0};
    EXPECT_EQ(ioctl(pty_.master.get(), TIOCSWINSZ, &size), 0);
    ls.environment.emplace_back("NO_COLOR", "1");
    ls.out = process::FromFd{pty_.slave.get()};
    auto started = Child::start(ls);
    EXPECT_TRUE(started);
    child_ = std::move(*started);
  }

  // Waits for a picture in which this stands, and gives it.
  std::string expect(const std::string& text) {
    const std::string last = "\033[J";
    const auto deadline = within(kPatience);
    for (;;) {
      const std::size_t end = seen_.find(last);
      if (end == std::string::npos) {
        const std::string more = read_until(pty_.master.get(), last, deadline);
        EXPECT_NE(more, "") << "no '" << text << "'";
        if (more.empty()) return "";
        seen_ += more;
        continue;
      }
      const std::string picture = seen_.substr(0, end);
      seen_.erase(0, end + last.size());
      if (picture.find(text) != std::string::npos) return picture;
    }
  }
  // To the end of what it does after the signal.
  int end_by(int number) {
    child_->signal(number);
    const auto ended = child_->wait_for(kPatience);
    return ended ? ended->shell_status() : -1;
  }

 private:
  process::Pty pty_ = process::make_pty();
  std::optional<Child> child_;
  std::string seen_;
};

TEST_F(LsWatchTest, TellsChangesAsLines) {
  Child holder = hold("gpu/1", "db-1");
  Child seen = ls({"gpu/"});
  EXPECT_EQ(line(seen), "gpu/1  held by me, token 1, note 'db-1'\n");
  Child other = hold("other");
  let_go(holder);
  EXPECT_THAT(line(seen), ::testing::StartsWith("gpu/1  free"));
  seen.signal(SIGTERM);
  EXPECT_EQ(status(seen), 130);
  let_go(other);
}

TEST_F(LsWatchTest, TellsAllLocksForProgramsAndOnlyHeldOnesIfAsked) {
  Child seen = ls({"--json", "--held"});
  for (const std::string lock : {"a", "b"}) {
    Child holder = hold(lock);
    const json told = json::parse(whole_line(seen));
    EXPECT_EQ(told.at("event"), "seen");
    EXPECT_EQ(told.at("lock").at("name"), lock) << "and not that the one before is free";
    let_go(holder);
  }
  seen.signal(SIGINT);
  EXPECT_EQ(status(seen), 130);
}

TEST_F(LsWatchTest, DrawsTheTableAnewOnATerminal) {
  Child holder = hold("gpu/1", "db-1");
  Screen screen(command({LEASEHOLD_PROGRAM, "ls", "--watch"}), 24);
  const std::string first = screen.expect("gpu/1");
  EXPECT_THAT(first, AllOf(HasSubstr("\033[H"), HasSubstr("held: 1"), HasSubstr("db-1"),
                           HasSubstr("NAME"), Not(HasSubstr("REMAINING"))));
  Child other = hold("job");
  EXPECT_THAT(screen.expect("job"), AllOf(HasSubstr("held: 2"), HasSubstr("gpu/1")));
  let_go(holder);
  EXPECT_THAT(screen.expect("held: 1"), AllOf(HasSubstr("job"), Not(HasSubstr("gpu/1"))));
  let_go(other);
  EXPECT_THAT(screen.expect("held: 0"), HasSubstr("NAME"));
  EXPECT_EQ(screen.end_by(SIGINT), 130);
}

TEST_F(LsWatchTest, DrawsNoMoreThanTheTerminalHas) {
  Child one = hold("one");
  Child two = hold("two");
  Child three = hold("xthree");
  Screen screen(command({LEASEHOLD_PROGRAM, "ls", "--watch"}), 5);
  EXPECT_THAT(screen.expect("held: 3"),
              AllOf(HasSubstr("one"), HasSubstr("and 2 more"), Not(HasSubstr("xthree"))));
  EXPECT_EQ(screen.end_by(SIGTERM), 130);
  for (Child* holder : {&one, &two, &three}) let_go(*holder);
}

TEST_F(LsWatchTest, EndsWhenNobodyReads) {
  Child holder = hold("gpu/1");
  const Finished ended = shell("leasehold ls --watch | head -n 1");
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out, HasSubstr("gpu/1  held by me"));
  let_go(holder);
}

TEST_F(LsWatchTest, WrongInputIsRefusedAsWithoutIt) {
  EXPECT_EQ(leasehold({"ls", "--watch", "a\nb"}).status, 64);
  EXPECT_EQ(leasehold({"ls", "--watch", "--store", "sqlite:" + path("none.db")}).status, 69);
}

}  // namespace
}  // namespace leasehold::cli
