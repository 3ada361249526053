#include "record.h"

#include "visits.h"

namespace leasehold::files {
namespace {

const ResourceName kName = ResourceName::parse("report.json").value();

Record full() {
  const Token token = token_of(34, '2');
  return {.mark = {.lineage = token.lineage,
                   .holder = fence::Mark::Holder{token.number, token.request, 7}},
          .refused = 3,
          .previous = std::string(32, '0')};
}

TEST(RecordTest, TextGivesTheRecordBack) {
  for (const Record& record : {Record{}, full()}) {
    EXPECT_EQ(record_from(kName, to_text(record), ""), record) << to_text(record);
  }
}

TEST(RecordTest, WhatIsWrongIsNotGuessed) {
  const auto text = [](const std::string& lines) {
    return "leasehold-fence 2\n" + lines + "end\n";
  };
  ASSERT_TRUE(record_from(kName, text("refused 0\n"), ""));
  for (const char* lines :
       {"", "refused -1\n", "refused 1.0\n", "refused 0\nrefused 0\n", "refused 0\nnew thing\n",
        "refused 0\nprevious ../..\n", "refused 0\nleast 1\n"}) {
    EXPECT_FALSE(record_from(kName, text(lines), "")) << lines;
  }
}

}  // namespace
}  // namespace leasehold::files
