#include "cli/command/duration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command/number.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

TEST(Duration, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parse_duration("0").value(), 0ms);
  EXPECT_EQ(parse_duration("1500ms").value(), 1500ms);
  EXPECT_EQ(parse_duration("30s").value(), 30s);
  EXPECT_EQ(parse_duration("5m").value(), 5min);
  EXPECT_EQ(parse_duration("1h").value(), 1h);
  EXPECT_EQ(parse_duration("0s").value(), 0ms);
  EXPECT_EQ(parse_duration("30d").value(), 720h);
  EXPECT_EQ(parse_duration("8784h").value(), 8784h);
}

TEST(Duration, RefusesEverythingElseInOneSentence) {
  for (const char* text : {"", "5", "s", "-5s", "+5s", "1.5s", "5 s", " 5s", "5s ", "5S", "5sec",
                           "1h30m", "0x5s", "ms", "5w", "∞", "1e3s"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid);
    EXPECT_THAT(parsed.error().message, ::testing::HasSubstr("is not a duration")) << text;
  }
  for (const char* text : {"8785h", "99999999999999999999s", "18446744073709551615ms"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, ::testing::HasSubstr("longer than a year")) << text;
  }
}

TEST(Duration, OutsideItsRangeIsRefusedInTheSameWordsAsTheHelp) {
  const auto why = [](std::string_view text, Range<Millis> range) {
    return parse_duration(text, range).error().message;
  };
  const Range<Millis> any = kAnyDuration;
  EXPECT_EQ(parse_duration("100ms", kTtls).value(), 100ms);
  EXPECT_EQ(parse_duration("24h", kTtls).value(), 24h);
  EXPECT_EQ(why("99ms", kTtls), "'99ms' is out of range: it must be 100ms to 24h");
  EXPECT_EQ(why("9999h", kTtls), "'9999h' is out of range: it must be 100ms to 24h");
  EXPECT_EQ(why("0", {1ms, any.most}), "'0' is out of range: it must be at least 1ms");
  EXPECT_EQ(why("9999h", {1ms, any.most}), "'9999h' is longer than a year");
  EXPECT_EQ(why("11m", {0ms, 10min}), "'11m' is out of range: it must be at most 10m");
  EXPECT_THAT(why("x", kTtls), ::testing::EndsWith("30d; it must be 100ms to 24h"));
  EXPECT_THAT(why("x", any), ::testing::EndsWith("5m, 1h or 30d"));
}

TEST(Duration, IsWrittenAsItIsRead) {
  EXPECT_EQ(written(0ms), "0");
  for (const char* text : {"1500ms", "30s", "90s", "5m", "24h", "8784h"}) {
    EXPECT_EQ(written(parse_duration(text).value()), text);
  }
}

TEST(Number, IsWholeAndInItsRange) {
  EXPECT_EQ(parse_number("-3", kAnyNumber).value(), -3);
  EXPECT_EQ(parse_number("9223372036854775807", {1, kAnyNumber.most}).value(), kAnyNumber.most);
  for (const char* text :
       {"", "x", "1.0", " 1", "1 ", "+1", "0x1", "0", "65", "9223372036854775808"}) {
    const auto parsed = parse_number(text, {1, 64});
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, ::testing::EndsWith("is not a whole number from 1 to 64"));
  }
}

TEST(Duration, IsShownRounded) {
  EXPECT_EQ(format_duration(-5ms), "0ms");
  EXPECT_EQ(format_duration(950ms), "950ms");
  EXPECT_EQ(format_duration(29500ms), "29.5s");
  EXPECT_EQ(format_duration(250s), "4m10s");
  EXPECT_EQ(format_duration(125min), "2h05m");
}

}  // namespace
}  // namespace leasehold::cli
