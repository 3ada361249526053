// The rule itself. Its branches are also played at every real fence (testing/fence_conformance.h).
#include "fence/rule.h"

#include <gmock/gmock.h>

#include <set>

#include "fence/attempt.h"
#include "fence/refusal.h"
#include "marks.h"
#include "testing/fence_cases.h"

namespace leasehold::fence {
namespace {

using namespace leasehold::testing;

const Token kMine = token_of(33, '1');

std::optional<Reason> refusal_of(const Mark& mark, const Attempt& attempt) {
  const Verdict verdict = judge(mark, attempt);
  const Refuse* refuse = std::get_if<Refuse>(&verdict);
  return refuse == nullptr ? std::nullopt : std::optional(refuse->why);
}

std::optional<Mark> after(const Mark& mark, const Attempt& attempt) {
  const Verdict verdict = judge(mark, attempt);
  const Enter* enter = std::get_if<Enter>(&verdict);
  return enter == nullptr ? std::nullopt : std::optional(enter->next);
}

bool repeats(const Mark& mark, const Attempt& attempt) {
  return std::holds_alternative<Repeat>(judge(mark, attempt));
}

TEST(FenceRule, TheFirstToComeEnters) {
  EXPECT_EQ(after({}, {.token = kMine}), held(33, '1'));
}

TEST(FenceRule, ASequenceNumberIsUsedOnce) {
  const Mark mark = held(33, '1', 5, "five");
  EXPECT_TRUE(repeats(mark, {.token = kMine, .sequence = 5, .write = "five"}));
  EXPECT_EQ(refusal_of(mark, {.token = kMine, .sequence = 5, .write = "other"}), Reason::reused);
  EXPECT_EQ(refusal_of(mark, {.token = kMine, .sequence = 5}), Reason::late);
  EXPECT_EQ(refusal_of(mark, {.token = kMine, .sequence = 4, .write = "four"}), Reason::late);
  EXPECT_EQ(after(mark, {.token = kMine, .sequence = 6, .write = "six"}), held(33, '1', 6, "six"));
}

TEST(FenceRule, TheSameContentUnderAnotherNumberIsAnotherWrite) {
  const Mark mark = held(33, '1', 5, "same");
  EXPECT_EQ(after(mark, {.token = kMine, .sequence = 6, .write = "same"}),
            held(33, '1', 6, "same"));
  EXPECT_EQ(refusal_of(mark, {.token = kMine, .sequence = 4, .write = "same"}), Reason::late);
  EXPECT_TRUE(repeats(mark, {.token = kMine, .write = "same"}));
}

TEST(FenceRule, AWriteWithoutANameForgetsTheNameOfTheLast) {
  const auto next =
      after(held(33, '1', 5, "five"), {.token = kMine, .writes = true, .sequence = 6});
  EXPECT_EQ(next, held(33, '1', 6));
  EXPECT_EQ(refusal_of(*next, {.token = kMine, .sequence = 6, .write = "five"}), Reason::reused);
}

TEST(FenceRule, EnteringKeepsTheLastWrite) {
  EXPECT_EQ(after(held(33, '1', 5, "five"), {.token = kMine}), held(33, '1', 5, "five"));
}

TEST(FenceRule, WhoBeganToNumberGoesOnNumbering) {
  EXPECT_EQ(refusal_of(held(33, '1', 5), {.token = kMine, .writes = true, .write = "w"}),
            Reason::unnumbered);
  EXPECT_EQ(after(held(33, '1'), {.token = kMine, .writes = true}), held(33, '1'));
}

TEST(FenceRule, TheNextHolderCountsForItself) {
  EXPECT_EQ(after(held(33, '1', 5, "five"), {.token = token_of(34, '2')}), held(34, '2'));
}

TEST(FenceRule, AWriteOfAnotherHolderIsNoRepetition) {
  EXPECT_EQ(refusal_of(held(34, '2', 5, "five"), {.token = kMine, .sequence = 5, .write = "five"}),
            Reason::lower);
  EXPECT_EQ(refusal_of(held(33, '2', 5, "five"), {.token = kMine, .sequence = 5, .write = "five"}),
            Reason::twice);
}

TEST(FenceRule, NobodyEntersBelowAReader) {
  Mark mark = held(33, '1');
  mark.reader = Mark::Reader{TokenNumber::of(35).value(), request_of('3')};
  EXPECT_EQ(refusal_of(mark, {.token = kMine}), Reason::lower);
  EXPECT_EQ(refusal_of(mark, {.token = token_of(35, '4')}), Reason::twice);
  EXPECT_EQ(after(mark, {.token = token_of(36, '4')}), held(36, '4'));
}

TEST(FenceRule, ReadersComeInBesideEachOther) {
  Mark mark = held(33, '1', 5, "five");
  const auto reads = [&](std::int64_t number, char request) {
    return after(mark, {.token = token_of(number, request), .access = Access::read});
  };
  mark = *reads(36, '3');
  EXPECT_EQ(mark.reader, (Mark::Reader{TokenNumber::of(36).value(), request_of('3')}));
  EXPECT_EQ(mark.holder, held(33, '1', 5, "five").holder) << "the writer's last write stays";
  EXPECT_EQ(reads(34, '2'), mark);
  EXPECT_EQ(reads(33, '1'), mark) << "the writer may read";
  EXPECT_EQ(refusal_of(mark, {.token = token_of(32, '1'), .access = Access::read}), Reason::lower);
  EXPECT_EQ(refusal_of(mark, {.token = token_of(33, '2'), .access = Access::read}), Reason::twice);
  EXPECT_EQ(refusal_of(mark, {.token = token_of(36, '2'), .access = Access::read}), Reason::twice);
}

TEST(FenceRule, AReaderThatMayWriteIsTheWriterThen) {
  Mark mark = *after({}, {.token = kMine, .access = Access::read});
  EXPECT_EQ(after(mark, {.token = kMine}), held(33, '1'));
}

TEST(FenceRule, AReaderKeepsWhatWasAdoptedOrSwept) {
  const Mark adopted{.lineage = lineage_of(), .least = TokenNumber::of(33).value()};
  const Mark swept{.floor = 33};
  for (const Mark& before : {adopted, swept}) {
    const Mark mark = *after(before, {.token = token_of(40, '4'), .access = Access::read});
    EXPECT_TRUE(after(mark, {.token = token_of(35, '3'), .access = Access::read}));
    EXPECT_TRUE(refusal_of(mark, {.token = token_of(32, '2'), .access = Access::read}));
    EXPECT_EQ(after(mark, {.token = token_of(41, '4')}), held(41, '4'));
  }
}

TEST(FenceRule, AStoreThatASweptFenceDoesNotKnowIsRefused) {
  const Mark mark{.knows_store = false};
  EXPECT_EQ(refusal_of(mark, {.token = kMine}), Reason::unknown);
  EXPECT_EQ(refusal_of(mark, {.token = kMine, .access = Access::read}), Reason::unknown);
}

TEST(FenceRule, OnlyAWriterHasASequenceNumberOrSingleEntry) {
  const auto check = [](EnterOptions options, bool writes = false) {
    options.access = Access::read;
    return attempt_of(kMine, options, writes, {});
  };
  EXPECT_TRUE(check({}));
  EXPECT_EQ(check({.entry = Entry::single}).error().code, ErrorCode::invalid);
  EXPECT_EQ(check({.sequence = 1}).error().code, ErrorCode::invalid);
  EXPECT_EQ(check({}, true).error().code, ErrorCode::invalid);
}

TEST(FenceRule, NobodyEntersUpToTheFloor) {
  const Mark mark{.lineage = lineage_of(), .floor = 33};
  EXPECT_EQ(refusal_of(mark, {.token = kMine}), Reason::swept);
  EXPECT_EQ(after(mark, {.token = token_of(34, '1')}), held(34, '1'));
  EXPECT_FALSE(adopted(kLedger, mark, lineage_of(), TokenNumber::of(33).value()));
  EXPECT_TRUE(adopted(kLedger, mark, lineage_of(), TokenNumber::of(34).value()));
}

TEST(FenceRule, NobodyIsAdoptedBelowTheFloorWhereThereIsNoMark) {
  const Mark none{.floor = 33};
  for (const std::int64_t number : {5, 33}) {
    const auto low = TokenNumber::of(number).value();
    const auto done = adopted(kLedger, none, lineage_of(), low);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::invalid);
    EXPECT_EQ(done.error().message, below_the_floor(kLedger, 33, low).message);
  }
  EXPECT_TRUE(adopted(kLedger, none, lineage_of(), TokenNumber::of(34).value()));
  // The floor of a mark is that of its own store.
  const Mark other{.lineage = lineage_of('b'), .floor = 33};
  EXPECT_TRUE(adopted(kLedger, other, lineage_of(), TokenNumber::of(5).value()));
}

TEST(FenceRule, NegativeSequenceNumbersAreInvalid) {
  EXPECT_TRUE(check_sequence(0));
  EXPECT_EQ(check_sequence(-1).error().code, ErrorCode::invalid);
}

TEST(FenceRule, FingerprintsTellPartsApart) {
  EXPECT_EQ(fingerprint({"a", "b"}), fingerprint({"a", "b"}));
  EXPECT_NE(fingerprint({"ab"}), fingerprint({"a", "b"}));
  EXPECT_NE(fingerprint({"a", ""}), fingerprint({"a"}));
  EXPECT_NE(fingerprint({"a", "bc"}), fingerprint({"ab", "c"}));
  EXPECT_EQ(fingerprint({}).size(), 32u);
}

// Of the reasons, `swept` and `unknown` need a sweep.
TEST(FenceRule, TheCasesForRealFencesReachEveryBranch) {
  std::set<Reason> reasons;
  bool entered = false;
  bool repeated = false;
  const FenceWays all{.numbers = true, .names = true, .readers = true};
  const FenceWays nameless{.numbers = true};
  for (const FenceWays& ways : {all, nameless}) {
    for (const FenceRuleCase& it : fence_rule_cases(ways)) {
      const Mark mark = it.mark(ways);
      const Verdict verdict = judge(mark, it.then.attempt(mark, ways));
      if (const Refuse* refuse = std::get_if<Refuse>(&verdict)) reasons.insert(refuse->why);
      entered = entered || std::holds_alternative<Enter>(verdict);
      repeated = repeated || std::holds_alternative<Repeat>(verdict);
    }
  }
  EXPECT_TRUE(entered && repeated);
  EXPECT_THAT(reasons, ::testing::UnorderedElementsAre(
                           Reason::foreign, Reason::adopted, Reason::lower, Reason::twice,
                           Reason::again, Reason::late, Reason::reused, Reason::unnumbered));
}

TEST(FenceRefusal, TellsTheNumberThatItComparedWith) {
  Mark mark{.lineage = lineage_of(),
            .least = TokenNumber::of(20).value(),
            .floor = 10,
            .holder = Mark::Holder{TokenNumber::of(30).value(), request_of('1')},
            .reader = Mark::Reader{TokenNumber::of(40).value(), request_of('2')}};
  const auto told = [&](Reason why, Access access = Access::write) {
    const Attempt attempt{.token = token_of(5, '3'), .access = access};
    return refusal(kLedger, attempt, why, mark).refusal->mark;
  };
  EXPECT_EQ(told(Reason::swept), 10);
  EXPECT_EQ(told(Reason::adopted), 20);
  EXPECT_EQ(told(Reason::lower, Access::read), 30);
  EXPECT_EQ(told(Reason::lower), 40);
  EXPECT_EQ(told(Reason::twice), 5);
}

TEST(FenceRefusal, OnlyAWrongNumberIsTheCallersOwnMistake) {
  for (const Reason why :
       {Reason::foreign, Reason::unknown, Reason::lower, Reason::again, Reason::late}) {
    const Error error = refusal(kLedger, Attempt{.token = kMine}, why, held(34, '2'));
    EXPECT_EQ(error.code, ErrorCode::fenced_out);
    EXPECT_EQ(error.refusal->offered, 33);
    EXPECT_EQ(error.refusal->mark, 34);
  }
  for (const Reason why : {Reason::reused, Reason::unnumbered}) {
    EXPECT_EQ(refusal(kLedger, Attempt{.token = kMine}, why, held(33, '1')).code,
              ErrorCode::invalid);
  }
}

}  // namespace
}  // namespace leasehold::fence
