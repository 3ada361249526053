// `leasehold drill` on the embedded store.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/tests/cli_fixture.h"
#include "leasehold/drill/checker.h"
#include "leasehold/drill/history_file.h"

namespace leasehold::cli {
namespace {

class DrillTest : public CliTest {
 protected:
  DrillTest() { std::filesystem::create_directory(path("tmp")); }

  // Ends after the cycles that are asked for; the duration is only for a broken one.
  process::Command command_of(Words options) const {
    Words words = with_defaults(std::move(options), {"--locks", "2", "--duration", "25s"});
    words.insert(words.begin(), {LEASEHOLD_PROGRAM, "drill"});
    process::Command what = command(words);
    what.environment.emplace_back("TMPDIR", path("tmp"));
    what.in = process::Null{};
    what.out = Piped{};
    what.err = Piped{};
    return what;
  }
  Finished drilled(Words options) const {
    auto child = Child::start(command_of(std::move(options)));
    EXPECT_TRUE(child);
    return finish(std::move(*child));
  }
  // What a drill says that shows no damage.
  nlohmann::json held_in_mode(const std::string& mode, int cycles) const {
    const Finished end = drilled({"--mode", mode, "--cycles", std::to_string(cycles), "--history",
                                  path("history"), "--json"});
    EXPECT_EQ(end.status, 0) << end.out << end.err;
    auto said = nlohmann::json::parse(end.out);
    EXPECT_EQ(said["mode"], mode);
    EXPECT_GE(said["stale_refused"], cycles);
    return said;
  }
  bool nothing_left() const { return std::filesystem::is_empty(path("tmp")); }

  drill::History history() const {
    leasehold::drill::HistoryReader reader;
    const auto read = reader.read(path("history"));
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    return reader.take();
  }
};

using drill::Kind;
using drill::Operation;

std::size_t count(const drill::History& history, Kind kind, Operation operation) {
  std::size_t found = 0;
  for (const drill::Record& record : history.records()) {
    if (record.kind == kind && record.operation == operation) ++found;
  }
  return found;
}

TEST_F(DrillTest, EveryLateWriteIsRefused) {
  const Finished end = drilled({"--cycles", "8", "--history", path("history")});
  EXPECT_EQ(end.status, 0) << end.out << end.err;
  EXPECT_THAT(end.out, HasSubstr("Nothing stale was accepted and no update was lost"));
  EXPECT_TRUE(nothing_left());

  drill::History what = history();
  const drill::Report report = check(what);
  EXPECT_TRUE(report.clean()) << to_text(report, what);
  EXPECT_GE(count(what, Kind::fault, Operation::pause), 8u);
  EXPECT_GE(count(what, Kind::refuse, Operation::write), 8u);
  EXPECT_GE(report.overlaps.count, 8u);  // each frozen holder believed in its lease
  EXPECT_GT(count(what, Kind::accept, Operation::write), 0u);
}

TEST_F(DrillTest, WithoutTheFenceUpdatesAreLost) {
  const Finished end = drilled({"--cycles", "8", "--fence", "none", "--history", path("history")});
  EXPECT_EQ(end.status, 1) << end.out << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("Damage, as is to be expected without a fence"),
                             HasSubstr("stale writes were accepted"), HasSubstr("lost")));
  drill::History what = history();
  const drill::Report report = check(what);
  EXPECT_GE(report.count(drill::Check::I2), 8u);
  EXPECT_GT(report.count(drill::Check::I4), 0u);
  EXPECT_EQ(report.refused, 0u);
}

std::size_t slots_with_a_refusal(const drill::History& history) {
  std::set<std::uint16_t> found;
  for (const drill::Record& record : history.records()) {
    if (record.kind == Kind::refuse) found.insert(record.slot);
  }
  return found.size();
}

TEST_F(DrillTest, WritersAreFrozenWhileReadersGoOn) {
  const auto said = held_in_mode("shared", 8);
  EXPECT_EQ(said["workers"], 4);
  EXPECT_EQ(said["readers"], 2);
  EXPECT_GT(said["reads_meanwhile"], 0);
  EXPECT_EQ(said["late_writes"][0]["answer"], "refused");
  EXPECT_LT(said["late_writes"][0]["token"], said["late_writes"][0]["successor"]);

  drill::History what = history();
  EXPECT_TRUE(check(what).clean());
  std::size_t shared = 0;
  for (const drill::Record& record : what.records()) {
    const bool granted = record.kind == Kind::ok && record.operation == Operation::acquire;
    if (granted && record.is_shared()) ++shared;
    if (record.kind == Kind::refuse) EXPECT_FALSE(record.is_shared());
  }
  EXPECT_GT(shared, 8u);
}

TEST_F(DrillTest, TheNextHolderOfASlotShutsTheLateOneOut) {
  const auto said = held_in_mode("permits", 12);
  EXPECT_EQ(said["permits"], 2);
  for (const auto& late : said["late_writes"]) {
    EXPECT_THAT(late["resource"].get<std::string>(),
                ::testing::EndsWith("#" + late["slot"].dump()));
    EXPECT_LT(late["token"], late["successor"]);
  }

  drill::History what = history();
  const drill::Report report = check(what);
  EXPECT_TRUE(report.clean()) << to_text(report, what);
  EXPECT_EQ(slots_with_a_refusal(what), 2u);
}

TEST_F(DrillTest, TheNextLeaderShutsTheLateOneOut) {
  const auto said = held_in_mode("election", 8);
  EXPECT_EQ(said["workers"], 3);
  for (const auto& late : said["late_writes"]) EXPECT_LT(late["token"], late["successor"]);

  drill::History what = history();
  const drill::Report report = check(what);
  EXPECT_TRUE(report.clean()) << to_text(report, what);
  EXPECT_GE(report.overlaps.count, 8u);  // each frozen leader believed in its lead
}

std::set<std::string> locks_with_a_refusal(const drill::History& history) {
  std::set<std::string> found;
  for (const drill::Record& record : history.records()) {
    if (record.kind == Kind::refuse) found.insert(history.lock_name(record.lock));
  }
  return found;
}

TEST_F(DrillTest, TheNextOwnerOfAPartitionShutsTheLateOneOut) {
  const auto said = held_in_mode("partitions", 6);
  EXPECT_EQ(said["partitions"], 6);
  for (const auto& late : said["late_writes"]) {
    EXPECT_THAT(late["resource"].get<std::string>(),
                ::testing::MatchesRegex("drill-[0-9a-f]+/[12]/[0-5]"));
    EXPECT_LT(late["token"], late["successor"]);
  }

  drill::History what = history();
  const drill::Report report = check(what);
  EXPECT_TRUE(report.clean()) << to_text(report, what);
  EXPECT_GT(locks_with_a_refusal(what).size(), 1u);
  // Whoever owns a partition works on it again and again.
  const auto& records = what.records();
  EXPECT_TRUE(std::any_of(records.begin(), records.end(), [](const drill::Record& record) {
    return record.kind == Kind::accept && record.sequence > 1;
  }));
}

TEST_F(DrillTest, OtherModesWithoutTheFenceLoseUpdatesToo) {
  for (const char* mode : {"permits", "election", "partitions"}) {
    const Finished end = drilled({"--mode", mode, "--cycles", "6", "--fence", "none"});
    EXPECT_EQ(end.status, 1) << mode << "\n" << end.out << end.err;
    EXPECT_THAT(end.out, AllOf(HasSubstr("stale writes were accepted"), HasSubstr("lost"),
                               HasSubstr("I2 was broken")));
  }
}

TEST_F(DrillTest, OtherModesSurviveKilledHolders) {
  for (const char* mode : {"shared", "permits", "election", "partitions"}) {
    const Finished end = drilled(
        {"--mode", mode, "--cycles", "4", "--fault", "pause,kill-holder", "--history", path(mode)});
    EXPECT_EQ(end.status, 0) << mode << "\n" << end.out << end.err;
  }
}

TEST_F(DrillTest, SlotsAndPartitionsBehindOtherFences) {
  for (const char* mode : {"permits", "partitions"}) {
    for (const char* fence : {"file", "http"}) {
      const Finished end =
          drilled({"--mode", mode, "--cycles", "3", "--fence", fence, "--ttl", "300ms"});
      EXPECT_EQ(end.status, 0) << mode << fence << "\n" << end.out << end.err;
    }
  }
}

TEST_F(DrillTest, KilledHoldersAreReplaced) {
  const Finished end = drilled({"--cycles", "3", "--fault", "pause,kill-holder", "--workers", "2",
                                "--history", path("history")});
  EXPECT_EQ(end.status, 0) << end.out << end.err;
  drill::History what = history();
  EXPECT_GT(count(what, Kind::fault, Operation::crash), 0u);
  EXPECT_TRUE(check(what).clean());
}

TEST_F(DrillTest, FileBehindItsFence) {
  const Finished end = drilled({"--cycles", "2", "--fence", "file", "--ttl", "300ms"});
  EXPECT_EQ(end.status, 0) << end.out << end.err;
}

TEST_F(DrillTest, ServiceBehindTheGate) {
  const Finished end = drilled({"--cycles", "4", "--fence", "http"});
  EXPECT_EQ(end.status, 0) << end.out << end.err;
}

// What a program is started with, as everybody on the machine can read it. Its end makes reading an
// error, which an iterator would throw.
std::string command_line_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
  std::ostringstream read;
  read << file.rdbuf();
  std::string text = read.str();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

TEST_F(DrillTest, UrlsAreNotInTheCommandLinesOfWorkers) {
  const std::string url = "sqlite:" + path("secret.db");
  process::Command what = command_of(
      {"--duration", "1h", "--store", url, "--fence", "sqlite:" + path("secret-fence.db")});
  what.placement = process::Placement::own_group;
  auto child = Child::start(what);
  ASSERT_TRUE(child);
  std::vector<std::string> workers;
  while (workers.size() < 6) {
    ASSERT_FALSE(child->wait_for(1ms)) << finish(std::move(*child)).err;
    workers.clear();
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      const std::string line = pid > 0 ? command_line_of(pid) : "";
      // A folder of this test's own is among the arguments of its workers.
      const bool mine = line.find(path("tmp")) != std::string::npos;
      if (mine && line.find("drill-worker") != std::string::npos) workers.push_back(line);
    }
  }
  for (const std::string& line : workers) EXPECT_THAT(line, Not(HasSubstr("secret")));
  child->signal(SIGINT);
  EXPECT_THAT(finish(std::move(*child)).out, HasSubstr("interrupted"));
}

TEST_F(DrillTest, AllFaultsAreThoseThatTheStoreCanHave) {
  const Finished end = drilled({"--cycles", "2", "--fault", "all"});
  // Two cycles may pass without a kill, and then too little has happened.
  EXPECT_THAT(end.status, ::testing::AnyOf(0, 3)) << end.out << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("fault: pause"), HasSubstr("fault: kill-holder"),
                             HasSubstr("left out of all faults: kill-server, restart-server, cut"),
                             HasSubstr("(SQLite has no server and no network)")));
}

TEST_F(DrillTest, SaysWhereItsFilesAre) {
  const Finished end =
      drilled({"--cycles", "1", "--html", path("page.html"), "--history", path("history")});
  EXPECT_EQ(end.status, 0) << end.out << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("The page is in " + path("page.html")),
                             HasSubstr("The history is in " + path("history"))));
}

TEST_F(DrillTest, SaysIfTooLittleHappened) {
  const Finished end = drilled({"--fault", "none", "--duration", "500ms"});
  EXPECT_EQ(end.status, 3) << end.out << end.err;
  EXPECT_THAT(end.out, HasSubstr("Too little happened to say anything: 0 faults"));
}

TEST_F(DrillTest, AStoreThatIsThereIsNamedByItsUrl) {
  const Finished end = drilled({"--store", store(), "--cycles", "2"});
  EXPECT_EQ(end.status, 0) << end.out << end.err;
  EXPECT_THAT(leasehold({"ls", "--store", store()}).out, HasSubstr("drill-"));
}

TEST_F(DrillTest, SeveralDrillsMakeOneTable) {
  const Finished end =
      drilled({"--cycles", "2", "--fault", "pause,cut", "--each-fault", "--markdown"});
  EXPECT_EQ(end.status, 0) << end.out << end.err;
  EXPECT_THAT(end.out,
              AllOf(HasSubstr("| sqlite | sqlite | pause | "), HasSubstr("1 drills, "),
                    HasSubstr("no drill shows damage"), HasSubstr("SQLite has no server")));
}

TEST_F(DrillTest, SignalEndsItWithWhatThereIs) {
  process::Command what = command_of({"--duration", "1h"});
  what.placement = process::Placement::own_group;
  auto child = Child::start(what);
  ASSERT_TRUE(child);
  // Its folder is there when it has begun.
  while (nothing_left()) ASSERT_FALSE(child->wait_for(1ms));
  child->signal(SIGINT);
  const Finished end = finish(std::move(*child));
  EXPECT_TRUE(end.status == 0 || end.status == 3) << end.status << end.err;
  EXPECT_THAT(end.out, HasSubstr("interrupted"));
  EXPECT_TRUE(nothing_left());
}

struct Wrong {
  Words options;
  int status;
  std::string message;
};

TEST_F(DrillTest, WrongInputIsToldInOneSentence) {
  ASSERT_EQ(leasehold({"run", "x", "--store", store(), "--", "true"}).status, 0);
  const std::vector<Wrong> cases = {
      {{"--fault", "paus"}, 64, "there is no fault 'paus'"},
      {{"--fault", "cut"}, 77, "'cut' cannot be had on this store: SQLite has no server"},
      {{"--store", "mysql"}, 64, "there is no store 'mysql' for a drill; there are sqlite,"},
      {{"--store", "mysql://x"}, 77, "'mysql'; there are: etcd, postgres, "},
      {{"--fence", "mysql://x"}, 77, "there is no fence for 'mysql' in a drill"},
      {{"--html", "--fence", "none"}, 64, "--html: the value is missing: '--fence' is an option"},
      {{"extra"}, 64, "as in 'leasehold drill -- extra'"},
      {{"--fence", store(), "--cycles", "1"}, 64, "this database is a file of locks"},
      {{"--fence", "paper"}, 64, "there is no fence 'paper' for a drill"},
      {{"--store", store(), "--fault", "kill-server"}, 77, "that it has started itself"},
      {{"--ttl", "1ms"}, 64, "100ms"},
      {{"--duration", "1ms"}, 64, "--duration: '1ms' is out of range: it must be 100ms to 24h"},
      {{"--ttl", "25h"}, 64, "--ttl: '25h' is out of range: it must be 100ms to 24h"},
      {{"--workers", "1"}, 64, "from 2 to 64"},
      {{"--locks", "0"}, 64, "from 1 to 256"},
      {{"--watch", "cat total"}, 64, "--watch is for a program of your own"},
      {{"--mode", "permit"},
       64,
       "--mode: 'permit' is not one of exclusive, shared, permits, election"},
      {{"--mode", "shared", "--workers", "2"},
       64,
       "needs at least 3 workers for each lock, as two"},
      {{"--mode", "permits", "--workers", "2"}, 64, "waits for the permits of the others; there "},
      {{"--history", "/nowhere/at/all", "--cycles", "1"}, 69, "/nowhere/at/all"},
  };
  for (const Wrong& wrong : cases) {
    const Finished end = drilled(wrong.options);
    EXPECT_EQ(end.status, wrong.status) << wrong.message << "\n" << end.err;
    EXPECT_THAT(end.err, HasSubstr(wrong.message));
    EXPECT_EQ(std::count(end.err.begin(), end.err.end(), '\n'), 1) << end.err;
  }
  EXPECT_TRUE(nothing_left());
}

}  // namespace
}  // namespace leasehold::cli
