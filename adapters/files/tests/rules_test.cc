#include "rules.h"

#include <limits>

#include "scratch.h"

namespace leasehold::files {
namespace {

using ::testing::HasSubstr;

const ResourceName kName = ResourceName::parse("report.json").value();

Record entered(std::int64_t number, char request, std::int64_t sequence = 0) {
  const Token token = token_of(number, request);
  Record record;
  record.lineage = token.lineage;
  record.entered = Entered{token.number, token.request, sequence};
  return record;
}

Verdict write(const Record& record, const Token& token, std::optional<std::int64_t> sequence = {}) {
  return judge(kName, record, {.token = token, .writes = true, .sequence = sequence});
}

std::optional<std::int64_t> sequence_after(const Verdict& verdict) {
  const auto* admitted = std::get_if<Admitted>(&verdict);
  if (admitted == nullptr) return std::nullopt;
  return admitted->record.entered->sequence;
}

TEST(RulesTest, WritesOfOneHolderAreNumbered) {
  EXPECT_EQ(sequence_after(write({}, token_of(33, '1'))), 1);
  EXPECT_EQ(sequence_after(write(entered(33, '1', 1), token_of(33, '1'))), 2);
  EXPECT_EQ(sequence_after(write(entered(33, '1', 1), token_of(33, '1'), 5)), 5);
}

TEST(RulesTest, DelayedWriteOfTheSameHolderIsRefused) {
  for (const std::int64_t late : {1, 4, 5}) {
    const Verdict verdict = write(entered(33, '1', 5), token_of(33, '1'), late);
    const auto* refused = std::get_if<Refused>(&verdict);
    ASSERT_NE(refused, nullptr) << late;
    EXPECT_EQ(refused->error.code, ErrorCode::fenced_out);
    EXPECT_EQ(refused->same_sequence, late == 5);
    EXPECT_THAT(refused->error.message, HasSubstr("higher sequence number"));
  }
}

TEST(RulesTest, SequenceBeginsAgainWithTheNextHolder) {
  EXPECT_EQ(sequence_after(write(entered(33, '1', 5), token_of(34, '2'))), 1);
  EXPECT_EQ(sequence_after(write(entered(33, '1', 5), token_of(34, '2'), 1)), 1);
}

TEST(RulesTest, EnteringKeepsTheSequence) {
  const Verdict verdict = judge(kName, entered(33, '1', 5), {.token = token_of(33, '1')});
  EXPECT_EQ(sequence_after(verdict), 5);
}

TEST(RulesTest, SequenceNeverWraps) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(sequence_after(write({}, token_of(33, '1'), most)), most);
  const Verdict verdict = write(entered(33, '1', most), token_of(33, '1'));
  ASSERT_TRUE(std::holds_alternative<Refused>(verdict));
  EXPECT_EQ(std::get<Refused>(verdict).error.code, ErrorCode::invalid);
}

TEST(RulesTest, DelayedWriteOfAStaleHolderIsNeverTakenForARepetition) {
  const Verdict verdict = write(entered(34, '2', 5), token_of(33, '1'), 5);
  ASSERT_TRUE(std::holds_alternative<Refused>(verdict));
  EXPECT_FALSE(std::get<Refused>(verdict).same_sequence);
  const Verdict twin = write(entered(34, '2', 5), token_of(34, '1'), 5);
  ASSERT_TRUE(std::holds_alternative<Refused>(twin));
  EXPECT_FALSE(std::get<Refused>(twin).same_sequence);
}

}  // namespace
}  // namespace leasehold::files
