// ls, show, release, fence.
#include <sqlite3.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

using nlohmann::json;

class AdminTest : public CliTest {
 protected:
  Child hold(const std::string& lock) const {
    return start_ready(run_shell({lock, "--owner", "me"}, "echo ready; read line"));
  }
  static void execute(const std::string& file, const char* sql) {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 10'000);
    EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }
  std::string database() const {
    execute(path("app.db"), "CREATE TABLE invoice (id)");
    return "sqlite:" + path("app.db");
  }
};

TEST_F(AdminTest, LsShowsHeldAndFreeLocks) {
  ASSERT_EQ(leasehold({"run", "old", "--", "true"}).status, 0);
  Child holder = hold("ünïcode");
  const Finished list = leasehold({"ls"});
  EXPECT_EQ(list.status, 0);
  EXPECT_THAT(list.out, ::testing::StartsWith(
                            "NAME     STATE  HOLDER  TOKEN  HELD FOR  REMAINING  WAITERS\n"));
  EXPECT_THAT(list.out, HasSubstr("\nold      free   -       1      -         -          0\n"));
  EXPECT_THAT(list.out, HasSubstr("\nünïcode  held   me      2      "));
}

TEST_F(AdminTest, WhatAStoreHoldsCannotCommandTheTerminal) {
  Child holder = hold("x");
  // An escape sequence, a line break, C1 as UTF-8 and as a byte: no label of ours.
  execute(path("leasehold/locks.db"),
          "UPDATE lock SET owner = CAST(X'411B5B324A420A43C29B449B45' AS TEXT)");
  EXPECT_THAT(leasehold({"ls"}).out, HasSubstr("(an unreadable label)"));
  // A turned direction.
  execute(path("leasehold/locks.db"), "UPDATE lock SET owner = CAST(X'41E280AE46C3BC' AS TEXT)");
  const std::string shown = "A\uFFFDFü";
  EXPECT_THAT(leasehold({"ls"}).out, HasSubstr(" " + shown + " "));
  EXPECT_THAT(leasehold({"show", "x"}).out, HasSubstr(" " + shown + "\n"));
  EXPECT_THAT(leasehold({"run", "x", "-v", "--wait", "3s", "--", "true"}).err,
              HasSubstr("held by " + shown + " for"));
  const std::string other = "00000000000000000000000000000000";
  EXPECT_THAT(leasehold({"release", "x", "--force", "--request", other}).err, HasSubstr(shown));
  EXPECT_THAT(leasehold({"release", "x", "--force"}).out, HasSubstr("from " + shown + " (request"));
}

TEST_F(AdminTest, LongNamesFitTheTerminal) {
  const std::string name = "begin/" + std::string(200, 'x') + "ü/end";
  ASSERT_EQ(leasehold({"run", name, "--", "true"}).status, 0);
  ASSERT_EQ(leasehold({"run", "short", "--", "true"}).status, 0);
  EXPECT_THAT(leasehold({"ls"}).out, HasSubstr("\n" + name + "  free")) << "not a terminal";
  EXPECT_THAT(on_terminal(80, {"ls", "--json"}), HasSubstr(name));
  EXPECT_THAT(on_terminal(300, {"ls"}), HasSubstr("\n" + name + "  free"));
  const std::string narrow = on_terminal(80, {"ls"});
  EXPECT_THAT(narrow, ::testing::ContainsRegex("\nbegin/x+…x+ü/end  free "));
  EXPECT_THAT(narrow, HasSubstr("\nshort "));
  std::istringstream lines(narrow);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const std::size_t state = line.find("STATE");
  for (; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u + 3) << "the ü and the ellipsis have 3 bytes more";
    EXPECT_TRUE(line.find("free") == state || line.find("free") == state + 3) << line;
  }
}

TEST_F(AdminTest, WideAndCombinedCharactersDoNotBendTheTable) {
  for (const char* name : {"東京", "cafe\u0301", "plain"}) {
    ASSERT_EQ(leasehold({"run", name, "--", "true"}).status, 0);
  }
  EXPECT_THAT(leasehold({"ls"}).out, AllOf(HasSubstr("\nplain  free"), HasSubstr("\n東京   free"),
                                           HasSubstr("\ncafe\u0301   free")));
  std::string wide;
  for (int i = 0; i < 50; ++i) wide += "東";
  ASSERT_EQ(leasehold({"run", wide, "--", "true"}).status, 0);
  const std::string narrow = on_terminal(80, {"ls"});
  EXPECT_THAT(narrow, ::testing::ContainsRegex("\n(東)+…(東)+ +free "));
  EXPECT_THAT(narrow, Not(HasSubstr(wide)));
}

TEST_F(AdminTest, NamesCanBePastedIntoAShell) {
  const std::string name = "pay\u202Eyap it's";
  const std::string pasted = "$'pay\\xe2\\x80\\xaeyap it\\'s'";
  Child holder = hold(name);
  EXPECT_THAT(leasehold({"ls"}).out, HasSubstr("\n" + pasted + "  held"));
  EXPECT_THAT(leasehold({"show", name}).out, HasSubstr("  " + pasted + "\n"));
  const std::string shown = leasehold({"show", name, "--json"}).out;
  EXPECT_THAT(shown, HasSubstr("\"pay\\u202eyap it's\""));
  EXPECT_EQ(json::parse(shown).at("lock").at("name"), name);
  const Finished busy = leasehold({"run", name, "--", "true"});
  EXPECT_THAT(busy.err, HasSubstr("lock " + pasted + " is not free: me holds it"));
  const Finished again = finish(
      {"bash", "-c", "leasehold show " + pasted + " --json | grep -c '\"state\": \"held\"'"});
  EXPECT_EQ(again.out, "1\n") << again.err;
  EXPECT_THAT(leasehold({"release", name, "--force"}).out, HasSubstr("took " + pasted + " away"));
}

TEST_F(AdminTest, LsAsJson) {
  Child holder = hold("a \"quoted\" name");
  const json list = json::parse(leasehold({"ls", "--json"}).out);
  ASSERT_EQ(list.at("locks").size(), 1u);
  const json& lock = list.at("locks").at(0);
  EXPECT_EQ(lock.at("name"), "a \"quoted\" name");
  EXPECT_EQ(lock.at("state"), "held");
  EXPECT_EQ(lock.at("holder").at("owner"), "me");
  EXPECT_EQ(lock.at("holder").at("token"), 1);
  EXPECT_GT(lock.at("holder").at("remaining_ms").get<int>(), 0);
  EXPECT_EQ(lock.at("waiters").size(), 0u);
  EXPECT_EQ(list.at("store").at("guarantee"), "correctness");
}

TEST_F(AdminTest, LsByPrefixAndOnlyWhatIsHeld) {
  ASSERT_EQ(leasehold({"run", "invoice/1", "--", "true"}).status, 0);
  ASSERT_EQ(leasehold({"run", "invoice/2", "--at-least", "10m", "--", "true"}).status, 0);
  Child holder = hold("order");
  const auto names = [&](Words words) {
    words.insert(words.begin(), "ls");
    words.push_back("--json");
    Words found;
    const json list = json::parse(leasehold(words).out);
    for (const json& lock : list.at("locks")) found.push_back(lock.at("name"));
    return found;
  };
  EXPECT_EQ(names({"invoice/"}), (Words{"invoice/1", "invoice/2"}));
  EXPECT_EQ(names({"--held"}), (Words{"invoice/2", "order"}));
  EXPECT_EQ(names({"--held", "invoice/1"}), Words{});
  EXPECT_THAT(leasehold({"ls", "ord"}).out,
              AllOf(HasSubstr("\norder "), Not(HasSubstr("invoice"))));
  EXPECT_EQ(leasehold({"ls", "a", "b"}).status, 64);
  EXPECT_THAT(leasehold({"ls", "--help"}).out, HasSubstr("Usage: leasehold ls [PREFIX] [OPTIONS]"));
}

TEST_F(AdminTest, JsonTellsWhenInTimesOfTheWallClock) {
  const std::string before = shell("date -u +%FT%T").out.substr(0, 19);
  Child holder = hold("x");
  const std::string after = shell("date -u +%FT%T").out.substr(0, 19);
  const json held = json::parse(leasehold({"ls", "--json"}).out).at("locks").at(0).at("holder");
  const std::string since = held.at("held_since");
  EXPECT_THAT(since, ::testing::MatchesRegex("20..-..-..T..:..:..[.]...Z"));
  EXPECT_GE(since.substr(0, 19), before);
  EXPECT_LE(since.substr(0, 19), after);
  EXPECT_GT(held.at("lasts_until").get<std::string>(), since);
}

TEST_F(AdminTest, LookingAtADefaultStoreThatIsNotThereYetCreatesNothing) {
  EXPECT_EQ(json::parse(leasehold({"ls", "--json"}).out),
            json::parse(R"({"store": null, "locks": []})"));
  const Finished list = leasehold({"ls"});
  EXPECT_EQ(list.status, 0);
  EXPECT_EQ(list.out, "NAME  STATE  HOLDER  TOKEN  HELD FOR  REMAINING  WAITERS\n");
  EXPECT_THAT(leasehold({"show", "x"}).out, AllOf(HasSubstr("free\n"), HasSubstr("not there yet")));
  EXPECT_EQ(json::parse(leasehold({"show", "x", "--json"}).out).at("lock").at("state"), "free");
  EXPECT_EQ(leasehold({"release", "x", "--force"}).status, 75);
  for (const Words& words : {Words{"doctor"}, Words{"rotate-store-id", "--force"}}) {
    const Finished done = leasehold(words);
    EXPECT_EQ(done.status, 69);
    EXPECT_THAT(done.err, HasSubstr(path("leasehold/locks.db") + " is not there yet"));
  }
  EXPECT_FALSE(std::filesystem::exists(path("leasehold")));
}

TEST_F(AdminTest, LsOfAnEmptyStore) {
  ASSERT_EQ(leasehold({"run", "x", "--", "true"}).status, 0);
  execute(path("leasehold/locks.db"), "DELETE FROM lock");
  EXPECT_EQ(json::parse(leasehold({"ls", "--json"}).out).at("locks"), json::array());
  EXPECT_EQ(leasehold({"ls"}).status, 0);
}

TEST_F(AdminTest, ShowTellsEverythingAboutOneLock) {
  Child holder = hold("x");
  const Finished page = leasehold({"show", "x"});
  EXPECT_EQ(page.status, 0);
  EXPECT_THAT(page.out, AllOf(HasSubstr("held"), HasSubstr("me"), HasSubstr("guarantee"),
                              HasSubstr("correctness"), HasSubstr("because")));
  const json lock = json::parse(leasehold({"show", "x", "--json"}).out);
  EXPECT_EQ(lock.at("lock").at("name"), "x");
  EXPECT_EQ(lock.at("lock").at("holder").at("request").get<std::string>().size(), 32u);
  EXPECT_FALSE(lock.at("store").at("why").get<std::string>().empty());
}

TEST_F(AdminTest, ShowOfALockThatNobodyEverTook) {
  ASSERT_EQ(leasehold({"run", "other", "--", "true"}).status, 0);
  EXPECT_THAT(leasehold({"show", "x"}).out, HasSubstr("free\n"));
  const json lock = json::parse(leasehold({"show", "x", "--json"}).out);
  EXPECT_EQ(lock.at("lock").at("holder"), nullptr);
  EXPECT_EQ(lock.at("lock").at("last_token"), nullptr);
}

TEST_F(AdminTest, ReleaseWithoutForceExplainsAndDoesNothing) {
  Child holder = hold("x");
  const Finished refused = leasehold({"release", "x"});
  EXPECT_EQ(refused.status, 64);
  EXPECT_THAT(refused.err, HasSubstr("--force"));
  EXPECT_EQ(leasehold({"run", "x", "--", "true"}).status, 75);
}

TEST_F(AdminTest, ReleaseSaysWhomItTookTheLockFrom) {
  Child holder = hold("x");
  const Finished taken = leasehold({"release", "x", "--force"});
  EXPECT_EQ(taken.status, 0);
  EXPECT_THAT(taken.out, AllOf(HasSubstr("took 'x' away from me"), HasSubstr("token 1")));
  EXPECT_THAT(leasehold({"run", "x", "--fenced", "--", "env"}).out,
              HasSubstr("LEASEHOLD_TOKEN=2\n"));
}

TEST_F(AdminTest, ReleaseOfALockThatNobodyHolds) {
  ASSERT_EQ(leasehold({"run", "x", "--", "true"}).status, 0);
  const Finished gone = leasehold({"release", "x", "--force"});
  EXPECT_EQ(gone.status, 75);
  EXPECT_THAT(gone.err, HasSubstr("'x' is not held"));
}

TEST_F(AdminTest, ReleaseNeverHitsTheSuccessor) {
  std::string first;
  {
    Child holder = hold("x");
    first = json::parse(leasehold({"show", "x", "--json"}).out)
                .at("lock")
                .at("holder")
                .at("request")
                .get<std::string>();
    holder.in().reset();
    holder.wait();
  }
  Child successor = hold("x");
  const Finished refused = leasehold({"release", "x", "--force", "--request", first});
  EXPECT_EQ(refused.status, 75);
  EXPECT_THAT(refused.err, HasSubstr("another request"));
  EXPECT_EQ(leasehold({"run", "x", "--", "true"}).status, 75) << "the successor still holds it";
}

TEST_F(AdminTest, ReleaseFreesAKeptLock) {
  ASSERT_EQ(leasehold({"run", "x", "--at-least", "10m", "--", "true"}).status, 0);
  EXPECT_EQ(leasehold({"release", "x", "--force"}).status, 0);
  EXPECT_EQ(leasehold({"run", "x", "--", "true"}).status, 0);
}

TEST_F(AdminTest, RotatedLineageIsTheOneThatTokensCarry) {
  ASSERT_EQ(leasehold({"run", "x", "--", "true"}).status, 0);
  const auto lineage = [&] {
    return json::parse(leasehold({"show", "x", "--json"}).out)
        .at("lock")
        .at("lineage")
        .get<std::string>();
  };
  const std::string before = lineage();
  EXPECT_EQ(leasehold({"rotate-store-id"}).status, 64) << "not by accident";
  EXPECT_EQ(lineage(), before);
  EXPECT_EQ(leasehold({"rotate-store-id", "--force"}).status, 0);
  EXPECT_NE(lineage(), before);
  EXPECT_THAT(leasehold({"run", "x", "--fenced", "--", "env"}).out,
              HasSubstr("LEASEHOLD_LINEAGE=" + lineage() + "\n"));
}

TEST_F(AdminTest, FenceIsInstalledShownAndAdopted) {
  const std::string url = database();
  EXPECT_EQ(leasehold({"fence", "install", url}).status, 0);
  EXPECT_EQ(leasehold({"fence", "install", url}).status, 0) << "again changes nothing";
  EXPECT_EQ(json::parse(leasehold({"fence", "show", url, "--json"}).out).at("fences"),
            json::array());
  const std::string lineage = "00112233445566778899aabbccddeeff/invoices";
  const Finished adopted =
      leasehold({"fence", "adopt", url, "invoice", "--lineage", lineage, "--at-least", "7"});
  EXPECT_EQ(adopted.status, 0) << adopted.err;
  EXPECT_THAT(adopted.err, HasSubstr("did not know a resource 'invoice'"));
  EXPECT_EQ(
      leasehold({"fence", "adopt", url, "invoice", "--lineage", lineage, "--at-least", "8"}).err,
      "");
  const json marks = json::parse(leasehold({"fence", "show", url, "--json"}).out).at("fences");
  ASSERT_EQ(marks.size(), 1u);
  EXPECT_EQ(marks.at(0).at("resource"), "invoice");
  EXPECT_EQ(marks.at(0).at("lineage"), lineage);
  EXPECT_THAT(leasehold({"fence", "show", url}).out, HasSubstr(lineage));
}

TEST_F(AdminTest, FenceGuardsATable) {
  const std::string url = database();
  const Finished guarded =
      leasehold({"fence", "install", url, "--table", "invoice", "--resource", "book"});
  EXPECT_EQ(guarded.status, 0) << guarded.err;
  EXPECT_THAT(guarded.out, AllOf(HasSubstr("'invoice'"), HasSubstr("'book'")));
  EXPECT_THAT(shell("sqlite3 " + path("app.db") + " 'INSERT INTO invoice VALUES(1)'").err,
              HasSubstr("leasehold: not_entered"));
  const json tables = json::parse(leasehold({"fence", "show", url, "--json"}).out).at("tables");
  EXPECT_EQ(tables, json::parse(R"([{"table": "invoice", "resource": "book", "armed": true}])"));
  EXPECT_EQ(leasehold({"fence", "install", url, "--table", "invoice"}).status, 64)
      << "another resource guards it";
  EXPECT_EQ(leasehold({"fence", "remove", url, "--table", "invoice"}).status, 64) << "no --force";
  EXPECT_EQ(leasehold({"fence", "remove", url, "--table", "invoice", "--force"}).status, 0);
  EXPECT_EQ(shell("sqlite3 " + path("app.db") + " 'INSERT INTO invoice VALUES(1)'").status, 0);
  EXPECT_EQ(leasehold({"fence", "install", url, "--table", "invoice"}).status, 0);
  execute(path("app.db"), "DROP TABLE invoice; CREATE TABLE invoice(id)");
  EXPECT_THAT(leasehold({"fence", "show", url}).out, HasSubstr("a trigger is gone"));
}

TEST_F(AdminTest, FenceSaysThatMarksAreNotKept) {
  const std::string url = database();
  ASSERT_EQ(leasehold({"fence", "install", url}).status, 0);
  EXPECT_EQ(leasehold({"fence", "show", url}).err, "");
  execute(path("app.db"), "DROP TRIGGER leasehold_fence_stay");
  const Finished shown = leasehold({"fence", "show", url});
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.err, HasSubstr("a trigger that keeps marks"));
  ASSERT_EQ(leasehold({"fence", "install", url}).status, 0);
  EXPECT_EQ(leasehold({"fence", "show", url}).err, "");
}

TEST_F(AdminTest, FenceIsResetAndRemovedOnlyWithForce) {
  const std::string url = database();
  const std::string lineage = "00112233445566778899aabbccddeeff/invoices";
  ASSERT_EQ(leasehold({"fence", "install", url}).status, 0);
  ASSERT_EQ(leasehold({"fence", "adopt", url, "r", "--lineage", lineage, "--at-least", "7"}).status,
            0);
  const Finished asked = leasehold({"fence", "reset", url, "r"});
  EXPECT_EQ(asked.status, 64);
  EXPECT_THAT(asked.err, HasSubstr("--force"));
  EXPECT_THAT(leasehold({"fence", "show", url}).out, HasSubstr(lineage));
  EXPECT_EQ(leasehold({"fence", "reset", url, "r", "--force"}).status, 0);
  EXPECT_THAT(leasehold({"fence", "show", url}).out, HasSubstr("the first to come"));
  EXPECT_EQ(leasehold({"fence", "reset", url, "unknown", "--force"}).status, 64);
  EXPECT_EQ(leasehold({"fence", "reset", url, "", "--force"}).status, 64);

  EXPECT_EQ(leasehold({"fence", "remove", url}).status, 64);
  EXPECT_EQ(leasehold({"fence", "show", url}).status, 0);
  EXPECT_EQ(leasehold({"fence", "remove", url, "--force"}).status, 0);
  EXPECT_EQ(leasehold({"fence", "show", url}).status, 69);
}

TEST_F(AdminTest, FenceInstallChecksItsInput) {
  const std::string url = database();
  EXPECT_EQ(leasehold({"fence", "install", url, "--resource", "r"}).status, 64);
  EXPECT_EQ(leasehold({"fence", "install", url, "--table", ""}).status, 64);
  EXPECT_EQ(leasehold({"fence", "install", url, "--table", "missing"}).status, 64);
  EXPECT_EQ(leasehold({"fence", "install", url, "--table", "invoice", "--resource", "a\nb"}).status,
            64);
  const Finished hostile =
      leasehold({"fence", "install", url, "--table", "invoice; DROP TABLE invoice"});
  EXPECT_EQ(hostile.status, 64);
  EXPECT_THAT(hostile.err, HasSubstr("there is no table 'invoice; DROP TABLE invoice'"));
  execute(path("app.db"), "INSERT INTO invoice VALUES(1)");
}

TEST_F(AdminTest, FenceThatIsNotThere) {
  const Finished bare = leasehold({"fence", "show", database()});
  EXPECT_EQ(bare.status, 69);
  EXPECT_THAT(bare.err, ::testing::StartsWith("leasehold: "));
  EXPECT_EQ(leasehold({"fence", "show", "sqlite:" + path("missing.db")}).status, 69);
}

TEST_F(AdminTest, FenceAdoptChecksItsInput) {
  const std::string url = database();
  const std::string lineage = "00112233445566778899aabbccddeeff/invoices";
  const auto adopt = [&](const std::string& resource, const std::string& of,
                         const std::string& from) {
    return leasehold({"fence", "adopt", url, resource, "--lineage", of, "--at-least", from}).status;
  };
  EXPECT_EQ(adopt("", lineage, "1"), 64);
  EXPECT_EQ(adopt("r", "nonsense", "1"), 64);
  EXPECT_EQ(adopt("r", lineage, "0"), 64);
  EXPECT_EQ(adopt("r", lineage, "9223372036854775808"), 64);
  EXPECT_EQ(adopt("r", lineage, "1.5"), 64);
  EXPECT_EQ(leasehold({"fence", "adopt", url, "r"}).status, 64);
}

TEST_F(AdminTest, OutputThatCannotBeWrittenIsAFailure) {
  const Finished full = shell("leasehold ls > /dev/full");
  EXPECT_EQ(full.status, 74);
  EXPECT_THAT(full.err, HasSubstr("No space left on device"));
}

TEST_F(AdminTest, Version) {
  EXPECT_THAT(leasehold({"version"}).out,
              ::testing::MatchesRegex("leasehold [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  EXPECT_EQ(leasehold({"--version"}).out, leasehold({"version"}).out);
}

}  // namespace
}  // namespace leasehold::cli
