#include <gmock/gmock.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "leasehold/drill/report.h"
#include "leasehold/process/child.h"
#include "made_up.h"

namespace leasehold::drill {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

constexpr const char* kEvil = "</script><script>alert('\"&\")</script>\x1b[31m\xff";

std::string value_of(const std::vector<Row>& rows, const std::string& name) {
  for (const Row& row : rows) {
    if (row.name == name) return row.value;
  }
  return "no such row";
}

Mood mood_of(const std::vector<Row>& rows, const std::string& name) {
  for (const Row& row : rows) {
    if (row.name == name) return row.mood;
  }
  return Mood::plain;
}

TEST(Rows, SayWhatHeld) {
  const auto all = rows(made_up({}).outcome);
  EXPECT_EQ(value_of(all, "full cycles"), "100");
  EXPECT_EQ(value_of(all, "fault: pause"), "100");
  EXPECT_EQ(value_of(all, "stale writes refused"), "100");
  EXPECT_EQ(value_of(all, "overlaps at the lock"), "100");
  EXPECT_EQ(mood_of(all, "stale writes accepted"), Mood::good);
  EXPECT_EQ(mood_of(all, "invariants broken"), Mood::good);
}

TEST(Rows, SayWhichChecksCouldNotBeJudged) {
  Outcome outcome = made_up({}).outcome;
  const auto meaning = [&outcome] {
    for (const Row& row : rows(outcome)) {
      if (row.name == "invariants broken") return row.meaning;
    }
    return std::string();
  };
  EXPECT_EQ(
      meaning(),
      "I1, I2, I3, I4, I8, F1; not judged, without a log of the store: I5, I6, I7, Q1, H1, R1");
  outcome.report.store_log = true;
  EXPECT_EQ(meaning(), "I1, I2, I3, I4, I5, I6, I7, I8, Q1, H1, F1, R1");
}

Outcome of_permits() {
  Outcome outcome = made_up({}).outcome;
  outcome.mode = "permits";
  outcome.permits = 2;
  outcome.late_writes = {{"gpu#1", Slot{1}, 12, 15, "wrote"},
                         {"gpu#0", Slot{0}, 17, 21, "refused"}};
  return outcome;
}

TEST(Rows, SayTheNumbersOfALateWriteThatWasRefused) {
  const auto all = rows(of_permits());
  EXPECT_EQ(value_of(all, "one of them"), "token 17");
  const auto row = std::find_if(all.begin(), all.end(),
                                [](const Row& each) { return each.name == "one of them"; });
  EXPECT_EQ(row->meaning, "at gpu#0, where token 21 had entered");
  EXPECT_EQ(value_of(rows(made_up({}).outcome), "one of them"), "no such row");
}

TEST(Rows, SayWhatAnOverlapIs) {
  const auto overlap_in = [](const std::string& mode, unsigned partitions) {
    Outcome outcome = made_up({}).outcome;
    outcome.mode = mode;
    outcome.partitions = partitions;
    for (const Row& row : rows(outcome)) {
      if (row.name == "overlaps at the lock") return row.meaning;
    }
    return std::string();
  };
  EXPECT_EQ(overlap_in("election", 0), "two believed to lead at the same time");
  EXPECT_EQ(overlap_in("partitions", 6), "two believed to own the same partition at the same time");
}

TEST(Rows, TellReadsIfSomebodyReads) {
  Outcome outcome = made_up({}).outcome;
  EXPECT_EQ(value_of(rows(outcome), "reads meanwhile"), "no such row");
  outcome.readers = 2;
  outcome.reads_meanwhile = 7;
  EXPECT_EQ(value_of(rows(outcome), "reads meanwhile"), "7");
}

TEST(Rows, SayWhatWasDamaged) {
  const auto all = rows(made_up({.fenced = false}).outcome);
  EXPECT_EQ(value_of(all, "stale writes accepted"), "100");
  EXPECT_EQ(mood_of(all, "stale writes accepted"), Mood::bad);
  EXPECT_EQ(mood_of(all, "updates lost"), Mood::bad);
  EXPECT_EQ(value_of(all, "invariants broken"), "200");
}

TEST(Page, SaysWhenByWhatAndForAsLongAsItsTimeline) {
  MadeUp made = made_up({});
  made.outcome.began = "2026-11-17T23:34:55.123Z";
  made.outcome.version = "1.2.3";
  made.outcome.worker = "./worker <x>";
  made.outcome.duration = std::chrono::hours(1);  // longer than what is drawn
  const std::string page = to_html(made.outcome, made.history);
  EXPECT_THAT(page,
              AllOf(HasSubstr("<dd>2026-11-17T23:34:55.123Z</dd>"), HasSubstr("<dd>1.2.3</dd>"),
                    HasSubstr("<dd>./worker &lt;x&gt;</dd>"), Not(HasSubstr("3.6e+03 s"))));
}

TEST(JsonReport, HasVerdictNumbersAndViolations) {
  const Json safe = Json::parse(to_json(made_up({}).outcome));
  EXPECT_EQ(safe["verdict"], "held");
  EXPECT_EQ(safe["cycles"], 100);
  EXPECT_EQ(safe["faults"]["pause"], 100);
  EXPECT_EQ(safe["stale_refused"], 100);
  EXPECT_EQ(safe["overlaps"], 100);
  EXPECT_EQ(safe["duration_ns"], 5'000'000'000);
  EXPECT_EQ(safe["broken"].size(), kChecks);
  EXPECT_EQ(safe["broken"]["I4"], 0);
  for (const char* check : {"I5", "I6", "I7", "Q1", "H1", "R1"}) {
    EXPECT_TRUE(safe["broken"][check].is_null()) << check;
  }
  EXPECT_TRUE(safe["violations"].empty());

  const Json unsafe = Json::parse(to_json(made_up({.fenced = false}).outcome));
  EXPECT_EQ(unsafe["verdict"], "damage");
  EXPECT_EQ(unsafe["stale_accepted"], 100);
  EXPECT_EQ(unsafe["broken"]["I2"], 100);
  EXPECT_EQ(unsafe["violations"][0]["check"], "I2");
}

TEST(JsonReport, HasModeSlotsAndTokens) {
  const Json plain = Json::parse(to_json(made_up({}).outcome));
  EXPECT_EQ(plain["mode"], "exclusive");
  EXPECT_EQ(plain["permits"], 0);
  const Json permits = Json::parse(to_json(of_permits()));
  EXPECT_EQ(permits["mode"], "permits");
  EXPECT_EQ(permits["permits"], 2);
  EXPECT_EQ(permits["partitions"], 0);
  EXPECT_EQ(permits["late_writes"][1],
            Json::parse(R"({"resource": "gpu#0", "slot": 0, "token": 17, "successor": 21,
                            "answer": "refused"})"));
  Outcome alone = of_permits();
  alone.late_writes.front().slot.reset();
  EXPECT_TRUE(Json::parse(to_json(alone))["late_writes"][0]["slot"].is_null());
}

TEST(JsonReport, TooLittleIsAVerdictOfItsOwn) {
  EXPECT_EQ(Json::parse(to_json(Outcome{}))["verdict"], "too_little");
}

TEST(JsonReport, TakesBytesThatAreNoText) {
  Outcome outcome = made_up({}).outcome;
  outcome.store = kEvil;
  outcome.notes = {kEvil};
  EXPECT_THAT(Json::parse(to_json(outcome))["store"].get<std::string>(), HasSubstr("\uFFFD"));
}

// What an XML parser makes of it: the attributes, then each case with the message of its failure.
std::string parsed(const std::string& xml) {
  auto child = process::Child::start({.argv = {"python3", "-c", R"(
import sys, xml.etree.ElementTree as tree
suite = tree.fromstring(sys.stdin.buffer.read())
print(suite.get('tests'), suite.get('failures'), suite.get('skipped'), suite.get('name'))
for case in suite.iter('testcase'):
    failure = case.find('failure')
    if case.find('skipped') is not None: print('SKIPPED', case.get('name')[:2])
    if failure is not None: print('FAILED', case.get('name'), '|', failure.get('message'), '|', failure.text)
)"},
                                      .in = process::Piped{},
                                      .out = process::Piped{}});
  EXPECT_TRUE(child);
  EXPECT_TRUE(process::write_all(child->in().get(), xml));
  child->in().reset();
  std::string said = process::read_all(child->out().get());
  EXPECT_TRUE(child->wait().success()) << xml;
  return said;
}

TEST(JunitReport, PassesWhenAllHeld) {
  const MadeUp made = made_up({});
  EXPECT_THAT(
      parsed(to_junit(made.outcome, made.history)),
      AllOf(testing::StartsWith("16 0 6 leasehold drill: sqlite:"), Not(HasSubstr("FAILED"))));
}

TEST(JunitReport, SkipsWhatOnlyALogOfTheStoreCanShow) {
  MadeUp made = made_up({});
  EXPECT_THAT(
      parsed(to_junit(made.outcome, made.history)),
      HasSubstr("SKIPPED I5\nSKIPPED I6\nSKIPPED I7\nSKIPPED Q1\nSKIPPED H1\nSKIPPED R1\n"));
  made.outcome.report.store_log = true;
  EXPECT_THAT(parsed(to_junit(made.outcome, made.history)), Not(HasSubstr("SKIPPED")));
}

TEST(JunitReport, FailsTheCaseThatWasBrokenWithItsRecords) {
  const MadeUp made = made_up({.fenced = false});
  const std::string said = parsed(to_junit(made.outcome, made.history));
  EXPECT_THAT(said, testing::StartsWith("16 4 6 "));
  EXPECT_THAT(said, HasSubstr("FAILED no stale write was accepted | 100 stale writes"));
  EXPECT_THAT(said, HasSubstr("FAILED no update was lost | 100 updates"));
  EXPECT_THAT(said, HasSubstr("I2 was broken 100 times | a token below the mark was accepted"));
  EXPECT_THAT(said, HasSubstr("accept write"));
}

TEST(JunitReport, FailsWhenTooLittleHappened) {
  const std::string said = parsed(to_junit(Outcome{}, History{}));
  EXPECT_THAT(said, testing::StartsWith("16 1 6 "));
  EXPECT_THAT(said, HasSubstr("FAILED enough happened to say anything | Too little happened"));
}

TEST(JunitReport, NamesTheMode) {
  EXPECT_THAT(parsed(to_junit(of_permits(), History{})), HasSubstr(", permits, pause"));
}

TEST(JunitReport, EscapesWhatComesFromOutside) {
  Outcome outcome;
  outcome.store = kEvil;
  EXPECT_THAT(parsed(to_junit(outcome, History{})),
              HasSubstr("</script><script>alert('\"&\")</script>\uFFFD[31m\uFFFD"));
}

TEST(HtmlReport, EscapesWhatComesFromOutside) {
  MadeUp made = made_up({.seconds = 1, .lock_prefix = "</script><script>alert(1)//"});
  made.outcome.store = kEvil;
  made.outcome.fence = kEvil;
  made.outcome.notes = {kEvil};
  const std::string page = to_html(made.outcome, made.history);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(&#39;&quot;&amp;&quot;)"));
  EXPECT_THAT(page, HasSubstr(R"("\u003c/script>\u003cscript>alert(1)//0")"));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, Not(HasSubstr("\xff")));
}

TEST(HtmlReport, DoesNotCallZeroWhatWasNotLookedAt) {
  MadeUp made = made_up({});
  EXPECT_THAT(to_html(made.outcome, made.history), HasSubstr(">not judged</td>"));
  made.outcome.report.store_log = true;
  EXPECT_THAT(to_html(made.outcome, made.history), Not(HasSubstr(">not judged</td>")));
}

TEST(HtmlReport, TellsTheModeAndTheSlotOfAMoment) {
  EXPECT_THAT(to_html(of_permits(), History{}), HasSubstr("<dt>mode</dt><dd>permits, 2</dd>"));
  History history;
  const auto add = [&](const char* process, Kind kind, std::int64_t token, std::int64_t time) {
    Record record;
    record.process = history.process(process);
    record.lock = history.lock("gpu");
    record.set_mode(Mode::permit_of(2), Slot{1});
    record.time = time;
    record.kind = kind;
    record.operation = Operation::write;
    record.token = token;
    ASSERT_TRUE(history.append(record));
  };
  add("resource", Kind::accept, 9, 1000);
  add("resource", Kind::refuse, 7, 2000);
  EXPECT_THAT(to_html(of_permits(), history), HasSubstr("resource at gpu#1"));
}

TEST(HtmlReport, NeedsNothingFromElsewhere) {
  const MadeUp made = made_up({});
  const std::string page = to_html(made.outcome, made.history);
  EXPECT_THAT(page, Not(HasSubstr("://")));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(HtmlReport, OfNothingIsStillAPage) {
  const std::string page = to_html(Outcome{}, History{});
  EXPECT_THAT(page, HasSubstr("Too little happened"));
  EXPECT_THAT(page, HasSubstr("\"lanes\":[]"));
}

TEST(HtmlReport, OfFiveMinutesIsSmall) {
  const MadeUp made = made_up({.seconds = 300, .cycles_per_second = 25, .locks = 6});
  ASSERT_EQ(made.outcome.cycles, 7500);
  EXPECT_LE(to_html(made.outcome, made.history).size(), 2'000'000);
}

TEST(HtmlReport, StaysSmallHoweverMuchHappens) {
  const MadeUp busy =
      made_up({.seconds = 60, .cycles_per_second = 40, .quiet_per_cycle = 12, .locks = 6});
  EXPECT_LE(to_html(busy.outcome, busy.history).size(), 2'000'000);
  const MadeUp faulty = made_up({.seconds = 60, .cycles_per_second = 200, .quiet_per_cycle = 0});
  EXPECT_LE(to_html(faulty.outcome, faulty.history).size(), 2'000'000);
}

}  // namespace
}  // namespace leasehold::drill
