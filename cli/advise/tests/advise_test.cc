// `leasehold advise` as a user runs it, and what it recommends, done.
#include <nlohmann/json.hpp>

#include "cli/advise/advice.h"
#include "cli/tests/terminal_program.h"

namespace leasehold::cli {
namespace {

using Json = nlohmann::json;

const Words kFencedByEtcd = {"advise",  "--harmless", "no",           "--idempotent", "no",
                             "--fence", "yes",        "--throughput", "yes",          "--machines",
                             "many",    "--store",    "etcd"};

class AdviseTest : public CliTest {
 protected:
  // What is recommended is done in this test's folder: ./job is there, and so is its database.
  // The job writes down that it ran, and under which token.
  Finished in_folder(const std::string& script) const {
    return shell("cd " + path("") + " && " + script);
  }
  void make_job(const std::string& script) const {
    write("job", "#!/bin/sh\necho \"ran ${LEASEHOLD_TOKEN-}\" >> log\n" + script);
    ASSERT_EQ(in_folder("chmod +x job").status, 0);
  }
  void make_database() const {
    ASSERT_EQ(
        in_folder("sqlite3 app.db \"CREATE TABLE account(id INTEGER PRIMARY KEY, balance "
                  "INTEGER, version INTEGER, fence INTEGER, claim TEXT); INSERT INTO account "
                  "VALUES(7, 100, 1, 0, NULL); CREATE TABLE done(key TEXT PRIMARY KEY); "
                  "CREATE TABLE outbox(id TEXT PRIMARY KEY, what TEXT NOT NULL, taken TEXT)\"")
            .status,
        0);
  }
  std::string ask(const std::string& sql) const {
    return in_folder("sqlite3 app.db \"" + sql + "\"").out;
  }
  std::string balance() const { return ask("SELECT balance FROM account"); }

  static const Recommendation& leaf(const std::string& id) {
    for (const Recommendation& one : recommendations()) {
      if (one.id == id) return one;
    }
    ADD_FAILURE() << "no " << id;
    return recommendations().front();
  }
  // The SQL of a leaf as a job, its variables filled in by the shell.
  static std::string sql_job(const std::string& id) {
    return "sqlite3 -bail app.db <<END\n" + std::string(leaf(id).sql) + "END\n";
  }
  // The commands of a leaf with the embedded store in place of the one that is not here.
  static std::string commands(const std::string& id) {
    std::string text(leaf(id).commands);
    const std::size_t place = text.find("{url}");
    return place == std::string::npos ? text : text.replace(place, 5, "sqlite:other.db");
  }
};

TEST_F(AdviseTest, EveryRecommendedCommandRuns) {
  make_database();
  make_job("");
  int runs = 0;
  for (const Recommendation& one : recommendations()) {
    if (one.commands.empty()) continue;
    const Finished done = in_folder("rm -f log; set -e\n" + commands(std::string(one.id)));
    EXPECT_EQ(done.status, 0) << one.id << ": " << done.err;
    const bool fenced = one.commands.find("--fenced") != std::string_view::npos;
    EXPECT_THAT(read("log"), ::testing::MatchesRegex(fenced ? "ran [0-9]+\n" : "ran \n")) << one.id;
    ++runs;
  }
  EXPECT_EQ(runs, 11);
}

TEST_F(AdviseTest, AFencedJobIsLetInAndAStaleOneIsNot) {
  for (const char* id : {"fenced-local", "fenced-shared"}) {
    in_folder("rm -f app.db");
    make_database();
    make_job(sql_job(id));
    const Finished done = in_folder("set -e\n" + commands(id) + commands(id));
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(balance(), "40\n") << id;
    make_job("LEASEHOLD_TOKEN=1\n" + sql_job(id));
    in_folder(commands(id));
    EXPECT_EQ(balance(), "40\n") << id << ": a late token was let in";
  }
}

TEST_F(AdviseTest, AClaimThatWasTakenOverChangesNothing) {
  make_database();
  make_job(sql_job("claim"));
  EXPECT_EQ(in_folder(commands("claim")).status, 0);
  EXPECT_EQ(balance(), "70\n");

  const std::string sql(leaf("claim").sql);
  const std::size_t last = sql.rfind("UPDATE");
  ask("UPDATE account SET balance = 100");
  make_job("sqlite3 app.db <<END\n" + sql.substr(0, last) +
           "UPDATE account SET claim = 'somebody else';\n" + sql.substr(last) + "END\n");
  EXPECT_EQ(in_folder(commands("claim")).status, 0);
  EXPECT_EQ(balance(), "100\n");
}

TEST_F(AdviseTest, AKeyMakesARepeatChangeNothing) {
  make_database();
  EXPECT_EQ(in_folder(sql_job("idempotency-key")).status, 0);
  EXPECT_EQ(balance(), "70\n");
  EXPECT_NE(in_folder(sql_job("idempotency-key")).status, 0);
  EXPECT_EQ(balance(), "70\n");
}

TEST_F(AdviseTest, AVersionRefusesWhoIsLate) {
  for (const char* id : {"compare-and-set", "compare-and-set-no-store"}) {
    in_folder("rm -f app.db");
    make_database();
    EXPECT_EQ(in_folder(sql_job(id)).status, 0);
    EXPECT_EQ(balance(), "70\n");
    ask("UPDATE account SET balance = 50");
    EXPECT_EQ(in_folder(sql_job(id)).status, 0);
    EXPECT_EQ(balance(), "50\n") << id;
  }
}

TEST_F(AdviseTest, ARowOfTheOutboxIsTakenOnce) {
  make_database();
  make_job(sql_job("outbox"));
  EXPECT_EQ(in_folder(commands("outbox")).status, 0);
  const std::string first = ask("SELECT taken FROM outbox");
  EXPECT_EQ(first.size(), 33u) << first;
  const std::string sql(leaf("outbox").sql);
  make_job("sqlite3 app.db <<END\n" + sql.substr(sql.rfind("UPDATE")) + "END\n");
  EXPECT_EQ(in_folder(commands("outbox")).status, 0);
  EXPECT_EQ(ask("SELECT taken FROM outbox"), first);
}

TEST_F(AdviseTest, OfTwoOnOneMachineOneRuns) {
  make_job("read line < go");
  write("flock.sh", commands("flock"));
  const Finished done = in_folder(
      "mkfifo go; sh flock.sh & while ! [ -e log ]; do :; done; "
      "sh flock.sh; s=$?; echo x > go; wait; echo status=$s");
  EXPECT_EQ(done.out, "status=75\n") << done.err;
  EXPECT_EQ(read("log"), "ran \n");
}

TEST_F(AdviseTest, ShowsTheWayAndOneRecommendation) {
  const Finished done = leasehold(kFencedByEtcd);
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.err, "");
  for (const char* step : {"--harmless no", "--idempotent no", "--fence yes", "--throughput yes",
                           "--machines many", "--store etcd"}) {
    EXPECT_THAT(done.out, HasSubstr(std::string("\n  ") + step + " ")) << step;
  }
  EXPECT_THAT(done.out, HasSubstr("\nTake a fenced lease, and check its token"));
  EXPECT_THAT(done.out, HasSubstr("\n    leasehold run job --fenced --store etcd://"));
  EXPECT_THAT(done.out,
              HasSubstr("    leasehold advise --harmless no --idempotent no --fence yes"));
  EXPECT_THAT(done.out, Not(HasSubstr("\033")));
}

TEST_F(AdviseTest, SaysSoIfNoLockIsNeeded) {
  const Finished done =
      leasehold({"advise", "--harmless", "yes", "--throughput", "no", "--store", "redis"});
  EXPECT_EQ(done.status, 0);
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("\nYou need no lock.\n"), HasSubstr("no difference here: --store.")));
}

TEST_F(AdviseTest, TellsProgramsTheSame) {
  Words words = kFencedByEtcd;
  words.push_back("--json");
  const Finished done = leasehold(words);
  EXPECT_EQ(done.status, 0);
  const Json json = Json::parse(done.out);
  EXPECT_EQ(json["path"].size(), 6u);
  EXPECT_EQ(json["path"][5]["flag"], "--store");
  EXPECT_EQ(json["path"][5]["answer"], "etcd");
  EXPECT_EQ(json["unused"], Json::array());
  EXPECT_EQ(json["recommendation"]["id"], "fenced-shared");
  EXPECT_EQ(json["recommendation"]["lock"], true);
  EXPECT_THAT(json["recommendation"]["commands"].get<std::string>(),
              HasSubstr("--fenced --store etcd://etcd-1,"));
}

TEST_F(AdviseTest, NamesTheAnswerThatIsMissing) {
  Words words = kFencedByEtcd;
  words.resize(words.size() - 2);
  const Finished done = leasehold(words);
  EXPECT_EQ(done.status, 64);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err, HasSubstr("give --store sqlite|postgres|redis|etcd|zookeeper|none"));
}

TEST_F(AdviseTest, AsksOnATerminalOnlyWhatMatters) {
  TerminalProgram program(command({LEASEHOLD_PROGRAM, "advise", "--idempotent", "no"}));
  program.expect("Is it harmless");
  program.expect("for help] ");
  program.type("no\n");
  EXPECT_THAT(program.expect("for help] "), HasSubstr("Can the resource fence"));
  program.type("y\n");
  program.expect("needed for throughput?");
  program.type("yes\n");
  program.expect("on one machine");
  program.type("m\n");
  program.expect("Which store");
  program.type("redis\n");
  const Finished done = program.finish();
  EXPECT_EQ(done.status, 0);
  EXPECT_THAT(done.out, ::testing::StartsWith("You said:\n"));
  EXPECT_THAT(done.out, HasSubstr("a claim at the resource"));
}

TEST_F(AdviseTest, AsksAgainAndExplains) {
  TerminalProgram program(command({LEASEHOLD_PROGRAM, "advise", "--harmless", "yes", "--json"}));
  program.expect("for help] ");
  program.type("perhaps\n");
  program.expect("'perhaps' is not one of yes, no");
  program.type("?\n");
  program.expect("worked in vain");
  program.type("\n");
  program.expect("for help] ");
  program.type("  yes \n");
  program.expect("on one machine");
  program.type("o\n");
  const Finished done = program.finish();
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(Json::parse(done.out)["recommendation"]["id"], "run-local");
}

TEST_F(AdviseTest, AnEndOfInputIsNoAnswer) {
  TerminalProgram program(command({LEASEHOLD_PROGRAM, "advise"}));
  program.expect("for help] ");
  program.type("\x04");
  program.expect("there is no advice without an answer to --harmless");
  const Finished done = program.finish();
  EXPECT_EQ(done.status, 64);
  EXPECT_EQ(done.out, "");
}

}  // namespace
}  // namespace leasehold::cli
