#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "kit/text/number.h"
#include "kit/text/percent.h"
#include "kit/text/visible_text.h"

namespace leasehold::kit {
namespace {

TEST(NumberTest, TheWholeTextOrNothing) {
  EXPECT_EQ(number_in<std::int64_t>("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(number_in<std::int64_t>("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(number_in<std::uint16_t>("65535"), 65'535);
  EXPECT_EQ(number_in<std::uint64_t>("ff", 16), 255u);
  EXPECT_EQ(number_in<double>("1.5e3"), 1500.0);
  for (const char* wrong : {"", " 1", "1 ", "+1", "--1", "1.0", "1e3", "0x1", "one", "-",
                            "9223372036854775808", "-9223372036854775809"}) {
    EXPECT_FALSE(number_in<std::int64_t>(wrong)) << wrong;
  }
  EXPECT_FALSE(number_in<std::uint16_t>("65536"));
  EXPECT_FALSE(number_in<std::uint64_t>("-1"));
  EXPECT_FALSE(number_in<std::int64_t>(std::string_view("1\0", 2)));
}

TEST(NumberTest, DigitsHaveNoSign) {
  EXPECT_EQ(digits_in<std::int64_t>("007"), 7);
  for (const char* wrong : {"", "-0", "-1", "+1", "9223372036854775808"}) {
    EXPECT_FALSE(digits_in<std::int64_t>(wrong)) << wrong;
  }
}

TEST(NumberTest, TakesOffWhatItReads) {
  std::string_view text = "3.5-rc";
  EXPECT_EQ(take_number<int>(text), 3);
  EXPECT_EQ(text, ".5-rc");
  EXPECT_FALSE(take_number<int>(text));
  EXPECT_EQ(text, ".5-rc");
}

TEST(PercentTest, EveryByteComesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string encoded = percent_encoded(all);
  EXPECT_EQ(encoded.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                      "0123456789-._~%"),
            std::string::npos);
  EXPECT_EQ(percent_decoded(encoded), all);
  EXPECT_EQ(percent_encoded("a/b\xff"), "a%2Fb%FF");
  EXPECT_EQ(percent_encoded("a/b?", [](char byte) { return byte != '?'; }), "a/b%3F");
}

TEST(PercentTest, WrongSignsAreNothing) {
  for (const char* wrong : {"%", "%4", "a%", "%zz", "%4g", "%%41", "%+1", "% 1"}) {
    EXPECT_FALSE(percent_decoded(wrong)) << wrong;
  }
  EXPECT_EQ(percent_decoded("%2f%2F"), "//");
}

TEST(PercentTest, OnlyWhatWeWouldWrite) {
  const auto encode = [](std::string_view text) { return percent_encoded(text); };
  EXPECT_EQ(percent_decoded_as("a%2Fb", encode), "a/b");
  for (const char* other : {"a%2fb", "%41", "a/b"}) {
    EXPECT_FALSE(percent_decoded_as(other, encode)) << other;
  }
}

TEST(QuotedTest, OrdinaryNamesKeepTheirLetters) {
  EXPECT_EQ(in_quotes("nightly/ünïcode $x \\n"), "'nightly/ünïcode $x \\n'");
  EXPECT_EQ(pasteable("nightly/ünïcode $x \\n"), "nightly/ünïcode $x \\n");
}

TEST(QuotedTest, WhatMisleadsIsWrittenOut) {
  EXPECT_EQ(in_quotes("a\u202Eb"), "$'a\\xe2\\x80\\xaeb'");
  EXPECT_EQ(pasteable("a\u200F\u061C\n\xff"), "$'a\\xe2\\x80\\x8f\\xd8\\x9c\\x0a\\xff'");
  EXPECT_EQ(in_quotes("it's a\\b"), "$'it\\'s a\\\\b'");
  EXPECT_EQ(pasteable("$'a'"), "$'$\\'a\\''") << "else it would read as another name";
  EXPECT_EQ(pasteable("it's"), "$'it\\'s'") << "else a shell would wait for the second one";
}

TEST(QuotedTest, OperandsAreNoOptions) {
  EXPECT_EQ(operands({"x", "it's"}), "'x' $'it\\'s'");
  EXPECT_EQ(operands({"x", "-f"}), "-- 'x' '-f'");
  EXPECT_EQ(operands({"--", "x-"}), "-- '--' 'x-'");
}

TEST(JsonShownTest, WhatMisleadsIsEscapedAndNothingElse) {
  EXPECT_EQ(json_shown("[\n\"ü 日本\"]"), "[\n\"ü 日本\"]");
  EXPECT_EQ(json_shown("\"a\u202Eb\x7f\u0085\""), "\"a\\u202eb\\u007f\\u0085\"");
  EXPECT_EQ(json_shown("\U0001FFFE\U0010FFFF"), "\\ud83f\\udffe\\udbff\\udfff");
}

}  // namespace
}  // namespace leasehold::kit
