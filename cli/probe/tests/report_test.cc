// What is said about a measurement that is known.
#include "cli/probe/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/probe/bars.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A hundred thousand moments: mostly 80 us, a hundred of 3 ms, ten of 40 ms.
ProbeReport known() {
  ProbeReport report;
  report.measured.length = report.how.duration = 100s;
  report.measured.tick = 1ms;
  report.measured.delays.add(80us, 99890);
  report.measured.delays.add(3ms, 100);
  report.measured.delays.add(40ms, 10);
  report.measured.pauses = report.measured.delays;
  report.processors = 2;
  report.work = {30s, 100, 10ms};
  return report;
}

// The text without line breaks, so that it can be searched.
std::string flowing(std::string text) {
  std::string out;
  for (const char letter : text) {
    const bool blank = letter == '\n' || letter == ' ';
    if (!blank || !out.ends_with(' ')) out += blank ? ' ' : letter;
  }
  return out;
}

TEST(ProbeFormat, Spans) {
  EXPECT_EQ(format_span(0ns), "0ns");
  EXPECT_EQ(format_span(999ns), "999ns");
  EXPECT_EQ(format_span(1us), "1us");
  EXPECT_EQ(format_span(1250us), "1.2ms");
  EXPECT_EQ(format_span(999900us), "1s");
  EXPECT_EQ(format_span(29968ms), "30s");
  EXPECT_EQ(format_span(90s), "90s");
  EXPECT_EQ(format_span(5min), "5m");
  EXPECT_EQ(format_span(12h), "12h");
  EXPECT_EQ(format_span(72h), "3d");
}

TEST(ProbeFormat, Numbers) {
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(0.3141), "0.31");
  EXPECT_EQ(format_number(7), "7");
  EXPECT_EQ(format_number(100), "100");
  EXPECT_EQ(format_number(25883.3), "25900");
  EXPECT_EQ(format_number(3e9), "3e+09");
}

TEST(ProbeBars, AreBetweenOneTwoFiveAndCoverAll) {
  probe::Histogram histogram;
  for (const Nanos length : {Nanos(300ns), Nanos(1us), Nanos(3us), Nanos(60us), Nanos(999us)})
    histogram.add(length);
  const auto bars = bars_of(histogram);
  ASSERT_EQ(bars.size(), 10u);
  EXPECT_EQ(bars.front().from, 0ns);
  EXPECT_EQ(bars.front().to, 1us);
  EXPECT_EQ(bars[1].to, 2us);
  EXPECT_EQ(bars[2].to, 5us);
  EXPECT_EQ(bars[3].to, 10us);
  EXPECT_EQ(bars.back().to, 1ms);
  const std::vector<std::uint64_t> counts = {1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
  for (std::size_t i = 0; i < bars.size(); ++i) {
    EXPECT_EQ(bars[i].count, counts[i]) << i;
    EXPECT_EQ(bars[i].from, i == 0 ? 0ns : bars[i - 1].to);
  }
  EXPECT_TRUE(bars_of({}).empty());
}

TEST(ProbeBars, BeginWhereThereIsSomething) {
  probe::Histogram histogram;
  histogram.add(3s);
  const auto bars = bars_of(histogram);
  ASSERT_EQ(bars.size(), 1u);
  EXPECT_EQ(bars[0].from, 2s);
  EXPECT_EQ(bars[0].to, 5s);
}

TEST(ProbeBars, HeightIsLogarithmic) {
  EXPECT_EQ(log_height(0, 1000), 0);
  EXPECT_EQ(log_height(1023, 1023), 1);
  EXPECT_DOUBLE_EQ(log_height(31, 1023), 0.5);
  EXPECT_GT(log_height(1, 1'000'000'000), 0.03);
}

TEST(ProbeText, ShowsTheDistribution) {
  const std::string text = probe_text(known());
  EXPECT_THAT(text, HasSubstr("Measured 100s, without load, on 2 processors.\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex(" 50us - +100us +99890 +[^ ]+ p50 p99\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex(" 2ms - +5ms +100 +[^ ]+ p99.9 p99.99\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex(" 20ms - +50ms +10 +[^ ]+ max\n"));
  EXPECT_THAT(text, HasSubstr("\n  p99.99  3ms\n"));
  EXPECT_THAT(text, HasSubstr("\n  max     40ms\n"));
  EXPECT_THAT(text, Not(HasSubstr("ended early")));
}

TEST(ProbeText, DoubtsQuantilesThatRestOnLittle) {
  ProbeReport report = known();
  report.measured.delays = {};
  report.measured.delays.add(80us, 5000);
  EXPECT_THAT(
      probe_text(report),
      AllOf(HasSubstr("p99.9   80us  rests on 5 moments; to rest on ten, measure 10s\n"),
            HasSubstr("p99.99  80us  only the longest seen; to rest on ten, measure 100s\n"),
            HasSubstr("p99     80us\n")));
}

TEST(ProbeText, NoneSeenIsNotZero) {
  const std::string text = flowing(probe_text(known()));
  EXPECT_THAT(text, HasSubstr("longer than what is left of the lease, 20s to 30s"));
  EXPECT_THAT(text, HasSubstr("Seen: no such pause in 100s. That is not zero."));
  EXPECT_THAT(text, HasSubstr("at most 2590 a day (three divided by the time measured)"));
  EXPECT_THAT(text, HasSubstr("measure for 3 days and see none"));
}

TEST(ProbeText, CountsWhatWasSeen) {
  ProbeReport report = known();
  report.measured.pauses.add(60s, 2);
  const std::string text = flowing(probe_text(report));
  EXPECT_THAT(text, HasSubstr("Seen: 2 pauses as long as that. Expect 1730 violations a day."));
  EXPECT_THAT(text, HasSubstr("it is at most 5440 a day."));
}

TEST(ProbeText, NamesTheTtlAndWhatStandsBehindIt) {
  const std::string text = flowing(probe_text(known()));
  EXPECT_THAT(text,
              HasSubstr("survives the p99.99 delay of 3ms at every renewal, and three renewals "
                        "in a row that fail: 100ms, and no shorter one is allowed"));
  EXPECT_THAT(text, HasSubstr("What stands behind these numbers"));
  EXPECT_THAT(text, HasSubstr("No TTL makes it zero; that is what the fence is for."));
  ProbeReport slow = known();
  slow.measured.delays.add(1s, 1000);
  EXPECT_THAT(flowing(probe_text(slow)), HasSubstr("that fail: 8116ms."));
  slow.measured.delays.add(9h, 1000);
  EXPECT_THAT(flowing(probe_text(slow)), HasSubstr("No TTL up to 24h survives"));
}

TEST(ProbeText, TellsSuspendLoadAndAnEarlyEnd) {
  ProbeReport report = known();
  report.measured.suspends = 1;
  report.measured.suspended = 3s;
  report.load = 4;
  report.how.duration = 200s;
  const std::string text = probe_text(report);
  EXPECT_THAT(text, HasSubstr("with 4 busy threads, on 2 processors; ended early."));
  EXPECT_THAT(text, HasSubstr("suspended 1 time meanwhile, for 3s in all"));
}

TEST(ProbeJson, HasEverything) {
  ProbeReport report = known();
  report.measured.pauses.add(60s, 2);
  const Json json = Json::parse(probe_json(report));
  EXPECT_EQ(json["measured"]["length_ns"], 100'000'000'000);
  EXPECT_EQ(json["measured"]["moments"], 100000);
  EXPECT_EQ(json["measured"]["ended_early"], false);
  EXPECT_EQ(json["measured"]["spin"], false);
  EXPECT_EQ(json["delay"]["max"]["ns"], 40'000'000);
  EXPECT_EQ(json["delay"]["p99.99"]["moments_beyond"], 10);
  EXPECT_NEAR(json["delay"]["p50"]["ns"].get<double>(), 80e3, 80e3 / 128);
  std::uint64_t moments = 0;
  for (const Json& bar : json["histogram"]) moments += bar["moments"].get<std::uint64_t>();
  EXPECT_EQ(moments, 100000u);
  EXPECT_EQ(json["suspend"]["times"], 0);
  EXPECT_EQ(json["workload"]["in_flight"], 1.0);
  EXPECT_EQ(json["violations"]["pauses_seen"], 2);
  EXPECT_NEAR(json["violations"]["per_day"].get<double>(), 1728, 0.5);
  EXPECT_NEAR(json["violations"]["per_day_at_most"].get<double>(), 5439.6, 1);
  EXPECT_EQ(json["surviving_ttl"]["ttl_ms"], 100);
  EXPECT_EQ(json["assumptions"].size(), 5u);
  EXPECT_EQ(json["note"], kNeverZero);
}

TEST(ProbeSvg, HasOneBarPerBarAndOneLinePerQuantileAndLoadsNothing) {
  const std::string svg = probe_svg(known());
  const auto count = [&](const std::string& text) {
    int found = 0;
    for (std::size_t at = svg.find(text); at != std::string::npos; at = svg.find(text, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("<rect class=\"bar\""),
            static_cast<int>(bars_of(known().measured.delays).size()));
  EXPECT_EQ(count("<line class=\"mark\""), 5);
  EXPECT_THAT(svg, AllOf(HasSubstr(">p99.99 3ms<"), HasSubstr(">max 40ms<")));
  EXPECT_EQ(count("http"), 1) << "only the name space";
  EXPECT_EQ(count("href"), 0);
  EXPECT_EQ(count("<script"), 0);
}

}  // namespace
}  // namespace leasehold::cli
