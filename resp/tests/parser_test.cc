#include "leasehold/resp/parser.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "leasehold/resp/command.h"

namespace leasehold::resp {
namespace {

using Step = Parser::Step;
using ::testing::HasSubstr;

Value parsed(std::string_view bytes) {
  Parser parser;
  parser.feed(bytes);
  Value value;
  EXPECT_EQ(parser.next(value), Step::value) << bytes << ": " << parser.problem();
  EXPECT_TRUE(parser.empty());
  return value;
}

Step step(std::string_view bytes, Parser::Limits limits = {}) {
  Parser parser(limits);
  parser.feed(bytes);
  Value value;
  return parser.next(value);
}

// Everything RESP has, in one value.
const std::string kAll =
    "*13\r\n+OK\r\n-ERR no\r\n:-7\r\n$5\r\na\r\nbc\r\n$-1\r\n*-1\r\n_\r\n#t\r\n,1.5\r\n"
    "(-123456789012345678901234567890\r\n!3\r\nbad\r\n=8\r\ntxt:some\r\n"
    "%1\r\n+key\r\n~2\r\n:1\r\n>1\r\n+pushed\r\n";

void expect_all(const Value& value) {
  ASSERT_EQ(value.items.size(), 13u);
  const auto& it = value.items;
  EXPECT_EQ(it[0].type, Type::simple);
  EXPECT_EQ(it[0].text, "OK");
  EXPECT_TRUE(it[1].is_error());
  EXPECT_EQ(it[1].text, "ERR no");
  EXPECT_EQ(it[2].integer, -7);
  EXPECT_EQ(it[3].text, "a\r\nbc");
  EXPECT_EQ(it[4].type, Type::null);
  EXPECT_EQ(it[5].type, Type::null);
  EXPECT_EQ(it[6].type, Type::null);
  EXPECT_EQ(it[7].type, Type::boolean);
  EXPECT_EQ(it[7].integer, 1);
  EXPECT_EQ(it[8].real, 1.5);
  EXPECT_EQ(it[9].text, "-123456789012345678901234567890");
  EXPECT_EQ(it[10].type, Type::error);
  EXPECT_EQ(it[10].text, "bad");
  EXPECT_EQ(it[11].type, Type::verbatim);
  EXPECT_EQ(it[11].text, "some");
  EXPECT_EQ(it[12].type, Type::map);
  const Value& set = it[12].under("key");
  EXPECT_EQ(set.type, Type::set);
  EXPECT_EQ(set.at(0).integer, 1);
  EXPECT_EQ(set.at(1).type, Type::push);
  EXPECT_EQ(set.at(2).type, Type::null) << "there is none";
}

TEST(Parser, ReadsEveryType) {
  expect_all(parsed(kAll));
}

TEST(Parser, ReadsByteByByte) {
  Parser parser;
  Value value;
  for (std::size_t i = 0; i + 1 < kAll.size(); ++i) {
    parser.feed(std::string_view(kAll).substr(i, 1));
    ASSERT_EQ(parser.next(value), Step::more) << i;
    ASSERT_FALSE(parser.empty());
  }
  parser.feed("\n");
  ASSERT_EQ(parser.next(value), Step::value);
  expect_all(value);
  EXPECT_TRUE(parser.empty());
}

TEST(Parser, ReadsInTwoPortionsCutAnywhere) {
  for (std::size_t cut = 0; cut <= kAll.size(); ++cut) {
    Parser parser;
    Value value;
    parser.feed(std::string_view(kAll).substr(0, cut));
    if (cut < kAll.size()) {
      ASSERT_EQ(parser.next(value), Step::more) << cut;
    }
    parser.feed(std::string_view(kAll).substr(cut));
    ASSERT_EQ(parser.next(value), Step::value) << cut;
    expect_all(value);
  }
}

TEST(Parser, GivesOneValueAfterTheOther) {
  Parser parser;
  Value value;
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += ":" + std::to_string(i) + "\r\n";
  for (std::size_t at = 0; at < many.size(); at += 777) {
    parser.feed(std::string_view(many).substr(at, 777));
  }
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_EQ(parser.next(value), Step::value);
    ASSERT_EQ(value.integer, i);
  }
  EXPECT_EQ(parser.next(value), Step::more);
}

TEST(Parser, LeavesAttributesOut) {
  EXPECT_EQ(parsed("|1\r\n+ttl\r\n:5\r\n+OK\r\n").text, "OK");
  const Value list = parsed("*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n:2\r\n|0\r\n:3\r\n");
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_EQ(list.at(0).integer, 2);
  EXPECT_EQ(list.at(1).integer, 3);
}

TEST(Parser, ReadsNumbersAtTheirLimits) {
  EXPECT_EQ(parsed(":9223372036854775807\r\n").integer, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parsed(":-9223372036854775808\r\n").integer, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parsed(":+5\r\n").integer, 5);
  EXPECT_EQ(step(":9223372036854775808\r\n"), Step::malformed);
  EXPECT_EQ(step(":\r\n"), Step::malformed);
  EXPECT_EQ(step(":+-5\r\n"), Step::malformed);
  EXPECT_EQ(step(":5x\r\n"), Step::malformed);
  EXPECT_TRUE(std::isinf(parsed(",inf\r\n").real));
  EXPECT_TRUE(std::isinf(parsed(",-inf\r\n").real));
  EXPECT_TRUE(std::isnan(parsed(",nan\r\n").real));
  EXPECT_EQ(parsed(",1e3\r\n").real, 1000);
  EXPECT_EQ(step(",\r\n"), Step::malformed);
  EXPECT_EQ(step("(12x\r\n"), Step::malformed);
  EXPECT_EQ(step("(-\r\n"), Step::malformed);
}

TEST(Parser, RefusesHostileLengthsBeforeTheBytesCome) {
  EXPECT_EQ(step("$99999999999999999999\r\n"), Step::malformed);
  EXPECT_EQ(step("$18446744073709551615\r\n"), Step::malformed);
  EXPECT_EQ(step("$18446744073709551614\r\n"), Step::malformed);
  EXPECT_EQ(step("$9223372036854775807\r\n"), Step::malformed);
  EXPECT_EQ(step("$-2\r\n"), Step::malformed);
  EXPECT_EQ(step("$+2\r\n"), Step::malformed);
  EXPECT_EQ(step("$?\r\n"), Step::malformed);
  EXPECT_EQ(step("!-1\r\n"), Step::malformed);
  EXPECT_EQ(step("*2147483647\r\n"), Step::malformed);
  EXPECT_EQ(step("*18446744073709551615\r\n"), Step::malformed);
  EXPECT_EQ(step("%9223372036854775808\r\n"), Step::malformed) << "twice that is 0";
  EXPECT_EQ(step("*-2\r\n"), Step::malformed);
  EXPECT_EQ(step("*?\r\n"), Step::malformed);
  EXPECT_EQ(step("%-1\r\n"), Step::malformed);
}

TEST(Parser, RefusesWhatGrowsBeyondTheLimitsInSmallSteps) {
  const Parser::Limits tight{.nesting = 3, .items = 10, .bytes = 100};
  EXPECT_EQ(step("*1\r\n*1\r\n*1\r\n:1\r\n", tight), Step::value);
  EXPECT_EQ(step("*1\r\n*1\r\n*1\r\n*1\r\n", tight), Step::malformed);
  EXPECT_EQ(step("*1\r\n|1\r\n|1\r\n|1\r\n", tight), Step::malformed);
  EXPECT_EQ(step("*5\r\n*5\r\n", tight), Step::more);
  EXPECT_EQ(step("*5\r\n*6\r\n", tight), Step::malformed);
  EXPECT_EQ(step("*3\r\n$40\r\n" + std::string(40, 'x') + "\r\n$60\r\n", tight), Step::malformed);
  Parser endless(tight);
  Value value;
  for (int i = 0; i < 100; ++i) {
    endless.feed("|1\r\n+a\r\n+b\r\n");
    if (endless.next(value) == Step::malformed) return;
  }
  FAIL() << "attributes without end were read without end";
}

TEST(Parser, RefusesALineWithoutEnd) {
  Parser parser;
  Value value;
  parser.feed("+");
  for (int i = 0; i < 100; ++i) {
    parser.feed(std::string(1000, 'x'));
    if (parser.next(value) == Step::malformed) return;
  }
  FAIL();
}

TEST(Parser, RefusesWhatIsNotResp) {
  Parser parser;
  parser.feed("HTTP/1.1 400 Bad Request\r\n");
  Value value;
  EXPECT_EQ(parser.next(value), Step::malformed);
  EXPECT_EQ(parser.begins(), "HTTP/1.1 400 Bad Request");
  parser.feed("+OK\r\n");
  EXPECT_EQ(parser.next(value), Step::malformed) << "it stays so";
  EXPECT_EQ(step("H"), Step::malformed) << "without waiting for the end of a line";
  EXPECT_EQ(step("+a\n"), Step::malformed);
  EXPECT_EQ(step("+a\rb\r\n"), Step::malformed);
  EXPECT_EQ(step("$1\r\nabc"), Step::malformed);
  EXPECT_EQ(step("#x\r\n"), Step::malformed);
  EXPECT_EQ(step("_x\r\n"), Step::malformed);
  EXPECT_EQ(step("=3\r\ntxt\r\n"), Step::malformed);
  EXPECT_EQ(step("\r\n"), Step::malformed);
}

TEST(Parser, RefusesWhatComesInRandomBytesOrWaits) {
  // Bytes from a generator that begins the same every time; only crashes and endless loops fail.
  std::uint64_t state = 1;
  const std::string alphabet = "+-:$*_#,(!=%~>|0123456789\r\nabc";
  for (int round = 0; round < 20'000; ++round) {
    Parser parser({.nesting = 4, .items = 50, .bytes = 200});
    Value value;
    for (int i = 0; i < 40; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      parser.feed(alphabet.substr((state >> 33) % alphabet.size(), 1 + (state >> 60) % 2));
      while (parser.next(value) == Step::value) {
      }
    }
  }
}

TEST(Command, IsReadBackByTheParser) {
  std::string bytes;
  append_command(bytes, {"SET", "a key\r\n", std::string_view("\0\xff", 2), ""});
  CommandWriter(bytes, 2).arg("INCRBY").arg(-42);
  Parser parser;
  parser.feed(bytes);
  Value command;
  ASSERT_EQ(parser.next(command), Step::value);
  ASSERT_EQ(command.items.size(), 4u);
  EXPECT_EQ(command.type, Type::array);
  EXPECT_EQ(command.at(1).text, "a key\r\n");
  EXPECT_EQ(command.at(2).text, std::string_view("\0\xff", 2));
  EXPECT_EQ(command.at(3).type, Type::bulk);
  ASSERT_EQ(parser.next(command), Step::value);
  EXPECT_EQ(command.at(1).text, "-42");
  EXPECT_TRUE(parser.empty());
}

}  // namespace
}  // namespace leasehold::resp
