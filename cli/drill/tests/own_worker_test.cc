// `leasehold drill -- COMMAND`: the examples, and programs that do not do what they should.
#include <nlohmann/json.hpp>

#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kExamples = LEASEHOLD_SOURCES "/examples/drill/";

class DrillOwnWorkerTest : public CliTest {
 protected:
  // In the test's folder, with one cycle.
  Finished drill(Words options, Words worker) const {
    Words words{"drill", "--store", store(), "--cycles", "1"};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back("--");
    words.insert(words.end(), worker.begin(), worker.end());
    return leasehold(words);
  }

  std::string file_url() const { return "file:" + path("total"); }
  std::string cat() const { return "cat " + path("total"); }

  void make_total() const { write("total", "0\n"); }
  void fence_total() const {
    make_total();
    ASSERT_EQ(leasehold({"fence", "install", file_url()}).status, 0);
  }

  // A worker under `leasehold run`, which does this with the lock; $total is the file.
  std::string script(const std::string& with_lock, const std::string& options = "") const {
    write("worker.sh", "set -eu\ntotal=" + path("total") +
                           "\nif [ -z \"${LEASEHOLD_TOKEN-}\" ]; then\n"
                           "  exec leasehold run \"$LEASEHOLD_LOCK\" --fenced --ttl "
                           "\"$LEASEHOLD_TTL\" --wait 1m " +
                           options + " -- sh \"$0\"\nfi\n" + with_lock + "\n");
    return path("worker.sh");
  }
};

TEST_F(DrillOwnWorkerTest, ShowsThatAShellWorkerBehindAFenceIsSafe) {
  fence_total();
  const Finished done = drill({"--watch", cat(), "--fence", file_url(), "--json", "--junit",
                               path("junit.xml"), "--html", path("page.html")},
                              {std::string(kExamples) + "worker.sh"});
  ASSERT_EQ(done.status, 0) << done.out << done.err;
  const Json said = Json::parse(done.out);
  EXPECT_EQ(said["verdict"], "held");
  EXPECT_EQ(said["cycles"], 1);
  EXPECT_EQ(said["stale_refused"], 1);
  EXPECT_EQ(said["stale_accepted"], 0);
  EXPECT_EQ(said["fence"], file_url());
  EXPECT_THAT(done.err, HasSubstr("refused token"));
  EXPECT_THAT(read("junit.xml"), HasSubstr("failures=\"0\""));
  EXPECT_THAT(read("page.html"), HasSubstr("<dd id=\"stale_refused\">1</dd>"));
  EXPECT_THAT(read("page.html"), HasSubstr("<dd>" + std::string(kExamples) + "worker.sh</dd>"));
  EXPECT_THAT(said["began"], ::testing::MatchesRegex("20..-..-..T..:..:..[.]...Z"));
  EXPECT_THAT(leasehold({"version"}).out, HasSubstr(said["version"].get<std::string>()));
  EXPECT_THAT(said["notes"].dump(), Not(HasSubstr("never entered")));
}

TEST_F(DrillOwnWorkerTest, ShowsThatAPythonWorkerBehindAFenceIsSafe) {
  const std::string bank = path("bank.db");
  ASSERT_EQ(finish({"sqlite3", bank,
                    "PRAGMA journal_mode = wal; CREATE TABLE account(balance INTEGER); "
                    "INSERT INTO account VALUES(0)"})
                .status,
            0);
  ASSERT_EQ(leasehold({"fence", "install", "sqlite:" + bank}).status, 0);
  const Finished done =
      drill({"--watch", "sqlite3 -cmd '.timeout 5000' " + bank + " 'SELECT * FROM account'",
             "--fence", "sqlite:" + bank},
            {std::string(kExamples) + "worker.py", bank});
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("1 late write was refused"));
  EXPECT_THAT(done.err, HasSubstr("leasehold: fenced_out"));
}

TEST_F(DrillOwnWorkerTest, ShowsTheDamageOfAWorkerThatIgnoresItsToken) {
  make_total();
  const Finished done = drill({"--watch", cat(), "--json", "--junit", path("junit.xml")},
                              {std::string(kExamples) + "unsafe.sh", path("total")});
  EXPECT_EQ(done.status, 1) << done.out << done.err;
  const Json said = Json::parse(done.out);
  EXPECT_EQ(said["verdict"], "damage");
  EXPECT_EQ(said["stale_accepted"], 1);
  EXPECT_LE(said["updates_lost"], 1);  // none, if it was frozen before it had read
  EXPECT_EQ(said["broken"]["I2"], 1);
  EXPECT_THAT(read("junit.xml"), HasSubstr("1 stale writes were accepted"));
}

TEST_F(DrillOwnWorkerTest, AWorkerThatNeverEndsIsDrilledToo) {
  make_total();
  const std::string worker = script(
      "while :; do\n  n=$(cat $total)\n  sleep 0.3\n  echo $((n + 1)) > $total\n  sleep 0.3\ndone");
  const Finished done = drill({"--watch", cat(), "--json"}, {"sh", worker});
  EXPECT_EQ(done.status, 1) << done.out << done.err;
  EXPECT_GE(Json::parse(done.out)["stale_accepted"], 1);
}

// A run must not count as two changes: after one the late write would leave what is there.
TEST_F(DrillOwnWorkerTest, AFileThatIsEmptyForAMomentIsNoChangeOfItsOwn) {
  make_total();
  const std::string worker =
      script("n=$(cat $total); sleep 0.3; : > $total; sleep 0.2; echo $((n + 1)) > $total");
  const Finished done = drill({"--watch", cat(), "--json"}, {"sh", worker});
  EXPECT_EQ(done.status, 1) << done.out << done.err;
  EXPECT_GE(Json::parse(done.out)["grants"], 4);  // the late one, two successors, the drill
}

// It asks the store whether it still holds the lock, just before it writes.
constexpr const char* kLate =
    "n=$(cat $total); sleep 0.8\n"
    "leasehold show \"$LEASEHOLD_LOCK\" | grep -q \"request *$LEASEHOLD_REQUEST\" || exit STATUS\n"
    "echo $((n + 1)) > $total";

std::string late(const std::string& status) {
  std::string text = kLate;
  return text.replace(text.find("STATUS"), 6, status);
}

TEST_F(DrillOwnWorkerTest, WithoutAFenceAFailureThatChangedNothingIsARefusal) {
  make_total();
  const Finished done = drill({"--watch", cat()}, {"sh", script(late("9"))});
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("1 late write was refused"),
                              HasSubstr("note: no --fence was given")));
}

TEST_F(DrillOwnWorkerTest, WithAFenceOnlyWhatItCountsIsARefusal) {
  fence_total();
  const Finished done = drill({"--watch", cat(), "--fence", file_url()}, {"sh", script(late("9"))});
  EXPECT_EQ(done.status, 3) << done.out << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("Too little happened"),
                              HasSubstr("no refusal was counted by the fence"),
                              HasSubstr("note: your worker never entered the fence")));
}

TEST_F(DrillOwnWorkerTest, AWorkerThatSaysItIsDoneAndIsNotHasLostAnUpdate) {
  make_total();
  const Finished done =
      drill({"--watch", cat(), "--json"}, {"sh", script(late("0"), "--on-lost ignore")});
  EXPECT_EQ(done.status, 1) << done.out << done.err;
  EXPECT_EQ(Json::parse(done.out)["updates_lost"], 1);
}

// What it writes then is rightful: the drill must not take it for a late write.
TEST_F(DrillOwnWorkerTest, AWorkerThatTriesAgainWithANewLeaseIsSafe) {
  fence_total();
  write("again.sh", "until " + std::string(kExamples) + "worker.sh; do sleep 0.05; done\n");
  const Finished done =
      drill({"--watch", cat(), "--fence", file_url(), "--json"}, {"sh", path("again.sh")});
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  EXPECT_EQ(Json::parse(done.out)["stale_refused"], 1);
}

TEST_F(DrillOwnWorkerTest, LeavesNobodyBehind) {
  make_total();
  const std::string worker =
      script("sleep 60 & echo $! >> $total.pids; sleep 0.3; echo $$ > $total; wait");
  EXPECT_EQ(drill({"--watch", cat()}, {"sh", worker}).status, 1);
  EXPECT_EQ(shell("for pid in $(cat " + path("total.pids") +
                  "); do grep '^State:.[^ZX]' /proc/$pid/status 2>/dev/null; done")
                .out,
            "");
}

TEST_F(DrillOwnWorkerTest, SaysWhatIsExpectedOfAWorker) {
  make_total();
  const auto refused = [&](Words options, Words worker) {
    const Finished done = drill(std::move(options), std::move(worker));
    EXPECT_EQ(done.status, 64) << done.out << done.err;
    return done.err;
  };
  EXPECT_THAT(refused({}, {"true"}), HasSubstr("--watch is missing"));
  EXPECT_THAT(refused({"--watch", cat()}, {"true"}),
              HasSubstr("was never seen to hold lock 'drill' in sqlite:"));
  EXPECT_THAT(refused({"--watch", cat()}, {"false"}), HasSubstr("it exited with status 1"));
  EXPECT_THAT(refused({"--watch", cat()}, {path("nothing")}), HasSubstr("cannot run"));
  EXPECT_THAT(refused({"--watch", "false"}, {"true"}), HasSubstr("the command of --watch exited"));
  EXPECT_THAT(refused({"--watch", cat()}, {"sh", script("sleep 0.3")}),
              HasSubstr("what --watch prints is the same before and after"));
  EXPECT_THAT(refused({"--watch", cat(), "--fault", "cut"}, {"true"}), HasSubstr("only pause"));
  EXPECT_THAT(refused({"--watch", cat(), "--fence", "sqlite"}, {"true"}),
              HasSubstr("give the URL of its fence"));
  EXPECT_THAT(refused({"--watch", cat(), "--lock", ""}, {"true"}), HasSubstr("lock name is empty"));
}

TEST_F(DrillOwnWorkerTest, ACommandMustFollowTheDashes) {
  const Finished done = leasehold({"drill", "--"});
  EXPECT_EQ(done.status, 64);
  EXPECT_THAT(done.err, HasSubstr("the command is missing"));
}

TEST_F(DrillOwnWorkerTest, RefusesWhatItWouldIgnore) {
  for (const Words& options : std::vector<Words>{{"--workers", "3"},
                                                 {"--locks", "2"},
                                                 {"--duration", "1s"},
                                                 {"--each-fault"},
                                                 {"--mode", "shared"},
                                                 {"--markdown"}}) {
    const Finished end = drill(options, {"true"});
    EXPECT_EQ(end.status, 64) << options[0];
    EXPECT_THAT(end.err, HasSubstr(options[0] + " does not go with a program of your own"));
    EXPECT_EQ(std::count(end.err.begin(), end.err.end(), '\n'), 1) << end.err;
  }
}

}  // namespace
}  // namespace leasehold::cli
