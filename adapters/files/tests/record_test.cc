#include "record.h"

#include "scratch.h"

namespace leasehold::files {
namespace {

Record full() {
  const Token token = token_of(34, '2');
  Record record;
  record.lineage = token.lineage;
  record.entered = Entered{token.number, token.request, 7};
  record.refused = 3;
  record.previous = std::string(32, '0');
  return record;
}

TEST(RecordTest, TextGivesTheRecordBack) {
  Record adopted;
  adopted.lineage = lineage_of();
  adopted.least = TokenNumber::of(9223372036854775807).value();
  for (const Record& record : {Record{}, full(), adopted}) {
    EXPECT_EQ(record_from(to_text(record)), record) << to_text(record);
  }
}

TEST(RecordTest, LockNamesMayHaveSpaces) {
  Record record = full();
  record.lineage = Lineage::parse(std::string(32, 'a') + "/a  b end ").value();
  EXPECT_EQ(record_from(to_text(record)), record);
}

TEST(RecordTest, NoPartOfARecordIsARecord) {
  const std::string text = to_text(full());
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(record_from(text.substr(0, size))) << size;
  }
  EXPECT_FALSE(record_from(text + "x"));
  EXPECT_FALSE(record_from(text + text));
}

TEST(RecordTest, WhatIsWrongIsNotGuessed) {
  const auto text = [](const std::string& fields) {
    return "leasehold-fence 1\n" + fields + "end\n";
  };
  const std::string lineage = "lineage " + lineage_of().str() + "\n";
  const std::string request = "request " + std::string(32, '1') + "\n";
  ASSERT_TRUE(record_from(text(lineage + "token 1\n" + request + "sequence 0\nrefused 0\n")));
  for (const std::string& fields :
       {std::string(), std::string("refused -1\n"), std::string("refused 1.0\n"),
        std::string("refused 0\nrefused 0\n"), std::string("refused 0\nnew thing\n"),
        std::string("refused 0\nprevious ../..\n"), std::string("least 1\nrefused 0\n"),
        "token 1\n" + request + "sequence 0\nrefused 0\n", lineage + "token 0\nrefused 0\n",
        lineage + "token 1\n" + request + "refused 0\n",
        lineage + "token 9223372036854775808\n" + request + "sequence 0\nrefused 0\n",
        lineage + "token 1\nrequest 12\nsequence 0\nrefused 0\n",
        lineage + request + "sequence 0\nrefused 0\n", std::string("lineage x\nrefused 0\n")}) {
    EXPECT_FALSE(record_from(text(fields))) << fields;
  }
  EXPECT_FALSE(record_from("leasehold-fence 2\nrefused 0\nend\n"));
}

}  // namespace
}  // namespace leasehold::files
