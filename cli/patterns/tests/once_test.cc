// leasehold once on a SQLite database, and what it says where there is nothing to do.
#include <nlohmann/json.hpp>

#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

class OnceCommandTest : public CliTest {
 protected:
  OnceCommandTest() { sql("CREATE TABLE payment(id)"); }

  std::string url() const { return "sqlite:" + path("app.db"); }
  std::string sql(const std::string& text) const {
    const Finished done = finish({"sqlite3", path("app.db"), text});
    EXPECT_EQ(done.err, "");
    return done.out;
  }
};

TEST_F(OnceCommandTest, InstallingAgainKeepsTheKeys) {
  const Finished done = leasehold({"once", "install", url()});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.out, "the idempotency keys are installed\n");
  sql("INSERT INTO leasehold_once(key, parameters, result, stored_at) VALUES('a', '', '', 0)");
  EXPECT_EQ(leasehold({"once", "install", url()}).status, 0);
  EXPECT_EQ(sql("SELECT count(*) FROM leasehold_once"), "1\n");
}

TEST_F(OnceCommandTest, ForgetsWhatIsOlderAndSaysHowMany) {
  ASSERT_EQ(leasehold({"once", "install", url()}).status, 0);
  sql("INSERT INTO leasehold_once(key, parameters, result, stored_at) VALUES"
      "('new', '', '', strftime('%s', 'now')), ('old', '', '', strftime('%s', 'now') - 3700)");
  const Finished done = leasehold({"once", "sweep", url(), "--older-than", "1h"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.out, "forgotten: 1\n");
  EXPECT_EQ(sql("SELECT key FROM leasehold_once"), "new\n");
}

TEST_F(OnceCommandTest, NothingIsForgottenUnasked) {
  ASSERT_EQ(leasehold({"once", "install", url()}).status, 0);
  sql("INSERT INTO leasehold_once(key, parameters, result, stored_at) VALUES('a', '', '', 0)");
  const Finished done = leasehold({"once", "sweep", url()});
  EXPECT_EQ(done.status, 64);
  EXPECT_THAT(done.err, HasSubstr("--older-than"));
  EXPECT_EQ(sql("SELECT count(*) FROM leasehold_once"), "1\n");
}

TEST_F(OnceCommandTest, WithoutKeysItSaysHowToInstallThem) {
  const Finished done = leasehold({"once", "sweep", url(), "--older-than", "1h"});
  EXPECT_EQ(done.status, 69);
  EXPECT_THAT(done.err, HasSubstr("leasehold once install"));
}

TEST_F(OnceCommandTest, MissingFileIsNotMade) {
  const Finished done = leasehold({"once", "install", "sqlite:" + path("none.db")});
  EXPECT_EQ(done.status, 69);
  EXPECT_EQ(finish({"test", "-e", path("none.db")}).status, 1);
}

TEST_F(OnceCommandTest, WhereNothingIsToBeInstalledThatIsSaid) {
  EXPECT_EQ(leasehold({"once", "install", "file:" + path("app.db")}).status, 77);
  const Finished done = leasehold({"serial", "install", url()});
  EXPECT_EQ(done.status, 77);
  EXPECT_THAT(done.err, HasSubstr("no serial queue to install for 'sqlite'"));
}

class LockKeysTest : public CliTest {
 protected:
  Finished once(const std::string& key, const std::string& status, Words more = {}) const {
    Words words = {"run", "x", "--once", key};
    words.insert(words.end(), more.begin(), more.end());
    return leasehold(run_shell(words, "echo ran; exit " + status));
  }
};

TEST_F(LockKeysTest, AreListedShownAndForgotten) {
  ASSERT_EQ(once("tuesday", "0").out, "ran\n");
  ASSERT_EQ(once("monday's", "0").out, "ran\n");
  EXPECT_EQ(leasehold({"once", "ls", "x"}).out, "$'monday\\'s'\ntuesday\n");
  EXPECT_EQ(nlohmann::json::parse(leasehold({"once", "ls", "x", "--json"}).out),
            nlohmann::json::parse(R"({"lock": "x", "keys": ["monday's", "tuesday"]})"));
  EXPECT_EQ(leasehold({"once", "ls", "y"}).out, "");
  EXPECT_EQ(leasehold({"once", "show", "x", "tuesday"}).out,
            "lock         x\n"
            "key          tuesday\n"
            "exit status  0\n"
            "command      'sh' '-c' 'echo ran; exit 0'\n");
  const auto shown =
      nlohmann::json::parse(leasehold({"once", "show", "x", "tuesday", "--json"}).out);
  EXPECT_EQ(shown.at("status"), 0);
  EXPECT_EQ(shown.at("command"), (Words{"sh", "-c", "echo ran; exit 0"}));

  EXPECT_EQ(leasehold({"once", "forget", "x", "tuesday"}).out, "forgotten: tuesday\n");
  EXPECT_EQ(leasehold({"once", "ls", "x"}).out, "$'monday\\'s'\n");
  EXPECT_EQ(once("tuesday", "0").out, "ran\n");
}

TEST_F(LockKeysTest, ThatAreNotThereAreAStatusOfTheirOwn) {
  for (const char* what : {"show", "forget"}) {
    for (int there = 0; there < 2; ++there) {
      const Finished none = leasehold({"once", what, "x", "monday"});
      EXPECT_EQ(none.status, 1);
      EXPECT_EQ(none.err, "leasehold: lock 'x' has no key 'monday'\n");
      ASSERT_EQ(leasehold({"run", "y", "--", "true"}).status, 0) << "and now with a store";
    }
    EXPECT_EQ(leasehold({"once", what, "x", "a\nb"}).status, 64);
    EXPECT_EQ(leasehold({"once", what, "x"}).status, 64);
  }
}

TEST_F(LockKeysTest, OfAFailureThatCountsSayHowToForgetThem) {
  const Words any = {"--once-keeps", "any", "--store", store()};
  ASSERT_EQ(once("monday", "3", any).status, 3);
  const Finished again = once("monday", "3", any);
  EXPECT_EQ(again.status, 3);
  EXPECT_EQ(again.out, "");
  const std::string command = "leasehold once forget --store '" + store() + "' 'x' 'monday'";
  EXPECT_THAT(again.err, HasSubstr("to run it again: " + command + "\n"));
  EXPECT_EQ(shell(command).status, 0);
  EXPECT_EQ(once("monday", "3", any).out, "ran\n");
}

TEST_F(LockKeysTest, ThatLookLikeOptionsAreForgottenByTheCommandThatIsTold) {
  const Words run = {"run", "--once=-f", "--once-keeps", "any", "--", "-x", "--", "false"};
  ASSERT_EQ(leasehold(run).status, 1);
  const std::string said = leasehold(run).err;
  ASSERT_THAT(said, HasSubstr("/locks.db' -- '-x' '-f'\n"));
  EXPECT_EQ(shell("cd / && " + said.substr(said.find("leasehold once"))).status, 0);
  EXPECT_EQ(leasehold(run).err, "");
}

}  // namespace
}  // namespace leasehold::cli
