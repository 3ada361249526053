#include "cli/hold/parent_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leasehold::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<ParentWord> words_of(ParentLines& lines) {
  std::vector<ParentWord> words;
  for (;;) {
    const auto word = lines.next();
    EXPECT_TRUE(word) << word.error().message;
    if (!word || !*word) return words;
    words.push_back(**word);
  }
}

TEST(ParentLinesTest, WordsComeWithTheirLineBreak) {
  ParentLines lines;
  EXPECT_THAT(words_of(lines), IsEmpty());
  lines.add("be");
  EXPECT_THAT(words_of(lines), IsEmpty());
  lines.add("at\n\nrelea");
  EXPECT_THAT(words_of(lines), ElementsAre(ParentWord::beat, ParentWord::beat));
  lines.add("se");
  EXPECT_THAT(words_of(lines), IsEmpty()) << "it may go on";
  lines.add("\n");
  EXPECT_THAT(words_of(lines), ElementsAre(ParentWord::release));
}

TEST(ParentLinesTest, AnythingElseIsWrongAndStaysWrong) {
  const std::string zero("beat\0\n", 6);
  const std::string long_line(ParentLines::kLongest + 1, 'x');
  for (const std::string& wrong :
       {std::string("stop\n"), std::string("beat \n"), std::string("BEAT\n"),
        std::string("beat\r\n"), zero, long_line, long_line + "\n"}) {
    ParentLines lines;
    lines.add("beat\n" + wrong);
    EXPECT_EQ(lines.next().value(), ParentWord::beat);
    const auto refused = lines.next();
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid);
    EXPECT_THAT(refused.error().message, HasSubstr("write 'beat', 'release' or an empty line"));
    lines.add("\nbeat\n");
    EXPECT_FALSE(lines.next());
  }
}

TEST(ParentLinesTest, LongestLineIsReadToItsEnd) {
  ParentLines lines;
  lines.add(std::string(ParentLines::kLongest, 'x'));
  EXPECT_THAT(words_of(lines), IsEmpty());
  lines.add("x");
  EXPECT_THAT(lines.next().error().message, HasSubstr("longer than 64 bytes"));
}

}  // namespace
}  // namespace leasehold::cli
