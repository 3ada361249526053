// fence enter, read and write, as a script under `leasehold run --fenced` uses them.
#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

class FenceDataTest : public CliTest {
 protected:
  FenceDataTest() {
    write("total", "100");
    EXPECT_EQ(leasehold({"fence", "install", url()}).status, 0);
  }

  std::string url() const { return "file:" + path("total"); }
  // A script under the lock; $url is the fenced file.
  Finished under_lock(const std::string& script) const {
    return leasehold(
        {"run", "total", "--fenced", "--", "sh", "-c", "url=" + url() + "; " + script});
  }
  std::string refused() const {
    return shell("leasehold fence show " + url() + " --json | tr -d ' \\n'").out;
  }
};

TEST_F(FenceDataTest, ReadThenWrite) {
  EXPECT_EQ(under_lock("leasehold fence read $url").out, "100");
  const Finished add = under_lock(
      "now=$(leasehold fence read $url) && printf %s $((now + 10)) | leasehold fence write $url");
  EXPECT_EQ(add.status, 0) << add.err;
  EXPECT_EQ(read("total"), "110");
}

TEST_F(FenceDataTest, ZombieScriptIsRefusedWithItsOwnStatus) {
  // The first holder goes on with what it had after the second one has entered.
  ASSERT_EQ(under_lock("env | grep ^LEASEHOLD_ | sed 's/^/export /' > " + path("first")).status, 0);
  ASSERT_EQ(under_lock("leasehold fence enter $url").out, "0\n");
  const Finished late =
      shell(". " + path("first") + "; echo zombie | leasehold fence write " + url());
  EXPECT_EQ(late.status, 76);
  EXPECT_THAT(late.err, AllOf(HasSubstr("refused token 1"), HasSubstr("mark is 2")));
  EXPECT_EQ(shell(". " + path("first") + "; leasehold fence read " + url()).status, 76);
  EXPECT_EQ(read("total"), "100");
  EXPECT_THAT(refused(), HasSubstr("\"refused\":2"));
}

TEST_F(FenceDataTest, AnotherLockIsToldHowItWouldBeAdopted) {
  ASSERT_EQ(under_lock("leasehold fence enter $url").status, 0);
  EXPECT_THAT(
      leasehold({"run", "other", "--fenced", "--", "leasehold", "fence", "enter", url()}).err,
      HasSubstr("leasehold fence adopt '" + url() + "' --lineage '"));
}

TEST_F(FenceDataTest, SequenceOrdersOneHoldersWrites) {
  const Finished done = under_lock(
      "echo two | leasehold fence write $url --sequence 2 && leasehold fence enter $url &&"
      " echo one | leasehold fence write $url --sequence 1");
  EXPECT_EQ(done.status, 76);
  EXPECT_EQ(done.out, "2\n");
  EXPECT_EQ(read("total"), "two\n");
  for (const char* wrong : {"0", "-1", "x", "1.5", "9223372036854775808", ""}) {
    EXPECT_EQ(
        under_lock(std::string("leasehold fence write $url --sequence '") + wrong + "' < /dev/null")
            .status,
        64)
        << wrong;
  }
  EXPECT_EQ(read("total"), "two\n");
}

TEST_F(FenceDataTest, OnceModeWritesOnce) {
  const Finished done = under_lock(
      "echo a | leasehold fence write $url --single-entry && echo b | leasehold fence write $url "
      "--single-entry");
  EXPECT_EQ(done.status, 76);
  EXPECT_EQ(read("total"), "a\n");
}

TEST_F(FenceDataTest, FileIsCopiedFrom) {
  write("new", std::string(200'000, 'x'));
  EXPECT_EQ(under_lock("leasehold fence write $url --from " + path("new")).status, 0);
  EXPECT_EQ(read("total"), std::string(200'000, 'x'));
  EXPECT_EQ(under_lock("leasehold fence write $url --from " + path("missing")).status, 69);
  EXPECT_EQ(read("total").size(), 200'000u);
}

TEST_F(FenceDataTest, FolderIsReplacedFromAnother) {
  shell("cd " + path("") + " && mkdir site new && echo old > site/page && echo new > new/page");
  const std::string site = "file:" + path("site");
  ASSERT_EQ(leasehold({"fence", "install", site}).status, 0);
  EXPECT_EQ(under_lock("leasehold fence write " + site + " < /dev/null").status, 64);
  EXPECT_EQ(under_lock("leasehold fence write " + site + " --from " + path("new")).status, 0);
  EXPECT_EQ(read("site/page"), "new\n");
  EXPECT_EQ(under_lock("leasehold fence read " + site).status, 64);
}

TEST_F(FenceDataTest, NeedsAHolderAndAFence) {
  const Finished bare = leasehold({"fence", "read", url()});
  EXPECT_EQ(bare.status, 64);
  EXPECT_THAT(bare.err, AllOf(HasSubstr("LEASEHOLD_TOKEN"), HasSubstr("--fenced")));
  EXPECT_EQ(under_lock("leasehold fence read sqlite:x").status, 64);
  EXPECT_EQ(under_lock("leasehold fence read file:" + path("missing")).status, 69);
  EXPECT_EQ(under_lock("LEASEHOLD_TOKEN=1.0 leasehold fence read $url").status, 64);
}

TEST_F(FenceDataTest, LimitOnFileSizesIsAnError) {
  write("new", std::string(100'000, 'x'));
  const Finished late = under_lock("ulimit -f 4; leasehold fence write $url --from " + path("new"));
  EXPECT_EQ(late.status, 69) << late.err;
  EXPECT_EQ(read("total"), "100");
}

}  // namespace
}  // namespace leasehold::cli
