// leasehold watch.
#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace leasehold::cli
