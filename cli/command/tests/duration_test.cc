#include "cli/command/duration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_EQ(parse_duration("8784h").value(), 8784h);
}

TEST(Duration, RefusesEverythingElseInOneSentence) {
  for (const char* text : {"", "5", "s", "-5s", "+5s", "1.5s", "5 s", " 5s", "5s ", "5S", "5sec",
                           "1h30m", "0x5s", "ms", "5d", "∞", "1e3s"}) {
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

TEST(Duration, IsShownRounded) {
  EXPECT_EQ(format_duration(-5ms), "0ms");
  EXPECT_EQ(format_duration(950ms), "950ms");
  EXPECT_EQ(format_duration(29500ms), "29.5s");
  EXPECT_EQ(format_duration(250s), "4m10s");
  EXPECT_EQ(format_duration(125min), "2h05m");
}

}  // namespace
}  // namespace leasehold::cli
