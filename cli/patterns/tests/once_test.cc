// leasehold once on a SQLite database, and what it says where there is nothing to do.
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
  const Finished done = leasehold({"once", "forget", url(), "--older-than", "1h"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.out, "forgotten: 1\n");
  EXPECT_EQ(sql("SELECT key FROM leasehold_once"), "new\n");
}

TEST_F(OnceCommandTest, NothingIsForgottenUnasked) {
  ASSERT_EQ(leasehold({"once", "install", url()}).status, 0);
  sql("INSERT INTO leasehold_once(key, parameters, result, stored_at) VALUES('a', '', '', 0)");
  const Finished done = leasehold({"once", "forget", url()});
  EXPECT_EQ(done.status, 64);
  EXPECT_THAT(done.err, HasSubstr("--older-than"));
  EXPECT_EQ(sql("SELECT count(*) FROM leasehold_once"), "1\n");
}

TEST_F(OnceCommandTest, WithoutKeysItSaysHowToInstallThem) {
  const Finished done = leasehold({"once", "forget", url(), "--older-than", "1h"});
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

}  // namespace
}  // namespace leasehold::cli
