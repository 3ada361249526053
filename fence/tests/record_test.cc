#include "fence/record.h"

#include <gmock/gmock.h>

#include "marks.h"

namespace leasehold::fence {
namespace {

using leasehold::testing::lineage_of;
using leasehold::testing::request_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TokenNumber number(std::int64_t value) {
  return TokenNumber::of(value).value();
}

Mark full() {
  return {.lineage = Lineage::parse(std::string(32, 'a') + "/a  b end ").value(),
          .least = number(7),
          .floor = 3,
          .holder = Mark::Holder{number(9223372036854775807), request_of('1'), 4, "abc"},
          .reader = Mark::Reader{number(12), request_of('2')}};
}

std::optional<Mark> read(std::string_view text) {
  auto record = read_record(kLedger, text, "");
  return record ? std::optional(record->mark) : std::nullopt;
}

TEST(FenceRecord, IsReadAsItWasWritten) {
  for (const Mark& mark :
       {Mark{}, full(), Mark{.lineage = lineage_of(), .least = number(7)},
        Mark{.lineage = lineage_of(), .holder = Mark::Holder{number(33), request_of('1')}},
        Mark{.lineage = lineage_of(), .reader = Mark::Reader{number(12), request_of('2')}}}) {
    EXPECT_EQ(read(to_text(mark)), mark) << to_text(mark);
  }
}

TEST(FenceRecord, KeepsTheLinesOfItsResource) {
  const std::string text = to_text(full(), {{"refused", "3"}});
  EXPECT_FALSE(read(text)) << "unknown lines";
  const auto record = read_record(kLedger, text, "", {"refused", "previous"});
  ASSERT_TRUE(record);
  EXPECT_EQ(record->mark, full());
  EXPECT_EQ(record->own, (Lines{{"refused", "3"}}));
}

TEST(FenceRecord, NoPartOfARecordIsARecord) {
  const std::string text = to_text(full());
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(read(text.substr(0, size))) << size;
  }
  EXPECT_FALSE(read(text + "x"));
  EXPECT_FALSE(read(text + text));
}

TEST(FenceRecord, WhatIsWrongIsNotGuessed) {
  const std::string lineage = "lineage " + lineage_of().str() + "\n";
  const std::string request = "request " + request_of('1').hex() + "\n";
  const auto text = [](const std::string& lines) {
    return "leasehold-fence 2\n" + lines + "end\n";
  };
  ASSERT_TRUE(read(text(lineage + "token 1\n" + request)));
  for (const std::string& lines :
       {"token 1\n" + request, lineage + "token 0\n" + request, lineage + "token -1\n" + request,
        lineage + "token 9223372036854775808\n" + request, lineage + "token 1\n", lineage + request,
        lineage + "token 1\nrequest 12\n", lineage + "token 1\n" + request + "sequence -1\n",
        lineage + "token 1\n" + request + "write \n", lineage + lineage, std::string("least 1\n"),
        std::string("floor 1\n"), lineage + "sequence 1\n", lineage + "read-token 3\n",
        std::string("lineage x\n"), lineage + "unknown line\n", lineage + "word\n"}) {
    EXPECT_FALSE(read(text(lines))) << lines;
  }
}

TEST(FenceRecord, SaysWhetherItIsOldOrDamaged) {
  const auto why = [](std::string_view text) {
    const auto record = read_record(kLedger, text, "delete the key 'k'");
    return record ? std::string("it was read") : record.error().message;
  };
  for (const char* text : {"leasehold-fence 1\nend\n", "leasehold-fence 1\n"}) {
    EXPECT_THAT(why(text), AllOf(HasSubstr("written by version 1 of"), HasSubstr("to begin afresh"),
                                 HasSubstr("forgets"), HasSubstr("delete the key 'k'")));
  }
  for (const char* text : {"leasehold-fence 3\nend\n", "leasehold-fence 3\n"}) {
    EXPECT_THAT(why(text), AllOf(HasSubstr("written by version 3 of"),
                                 HasSubstr("use a program that is at least as new"),
                                 Not(HasSubstr("delete"))));
  }
  for (const char* text : {"", "something else\n", "leasehold-fence x\nend\n",
                           "leasehold-fence \x1b[2J\nend\n", "leasehold-fence 2\n"}) {
    EXPECT_THAT(why(text), HasSubstr("damaged")) << text;
  }
}

}  // namespace
}  // namespace leasehold::fence
