#include "turns.h"

#include <gmock/gmock.h>

#include "tokens.h"

namespace leasehold::gate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Why = Objection::Why;

const TurnClock::time_point kNow{};

class TurnsTest : public ::testing::Test {
 protected:
  struct Answer {
    bool told = false;
    std::optional<Objection> objection;
    bool goes() const { return told && !objection; }
    bool refused(Why why) const { return told && objection && objection->why == why; }
  };
  struct Guest {
    Turns::Visit* visit = nullptr;
    std::shared_ptr<Answer> answer = std::make_shared<Answer>();
    Answer* operator->() const { return answer.get(); }
  };

  Guest enter(std::int64_t number, std::uint8_t request, std::int64_t sequence = 0,
              bool writes = true, bool once = false) {
    Guest guest;
    guest.visit = turns_->enter(Ticket{name("book"),
                                       {.token = test_token(number, request),
                                        .writes = writes,
                                        .single = once,
                                        .sequence = sequence}},
                                [answer = guest.answer](std::optional<Objection> objection) {
                                  EXPECT_FALSE(answer->told) << "told twice";
                                  answer->told = true;
                                  answer->objection = std::move(objection);
                                });
    return guest;
  }
  Guest read(std::int64_t number, std::uint8_t request) { return enter(number, request, 0, false); }
  void sync() { turns_->durable(given_); }
  const ResourceState& on_disk() { return disk_.at(name("book")); }
  void restart() {
    turns_ = std::make_unique<Turns>(disk_, write_, TurnOptions{.max_resources = 2});
  }

  ResourceStates disk_;
  Version given_ = 0;
  Turns::Write write_ = [this](const ResourceName& resource, const ResourceState& state) {
    disk_.insert_or_assign(resource, state);
    return ++given_;
  };
  std::unique_ptr<Turns> turns_ =
      std::make_unique<Turns>(disk_, write_, TurnOptions{.max_resources = 2});
};

TEST_F(TurnsTest, NobodyGoesBeforeTheMarkIsDurable) {
  const auto first = enter(33, 1);
  EXPECT_FALSE(first->told);
  EXPECT_EQ(on_disk().mark, held_by(test_token(33, 1)));
  EXPECT_TRUE(on_disk().open);
  sync();
  EXPECT_TRUE(first->goes());
}

TEST_F(TurnsTest, ASecondRequestWaitsForTheSyncOfTheFirst) {
  const auto first = enter(33, 1);
  const auto second = enter(33, 1);
  EXPECT_EQ(given_, 1u) << "nothing new to write";
  EXPECT_FALSE(second->told);
  sync();
  EXPECT_TRUE(first->goes() && second->goes());
}

TEST_F(TurnsTest, WhileOpenTheSameHolderNeedsNoSync) {
  auto first = enter(33, 1);
  sync();
  turns_->answered(first.visit, kNow);
  EXPECT_TRUE(enter(33, 1)->goes());
  EXPECT_EQ(given_, 1u);
}

TEST_F(TurnsTest, AHigherTokenWaitsForEveryForwardedLowerOne) {
  const auto a = enter(33, 1);
  const auto b = enter(33, 1);
  sync();
  ASSERT_TRUE(a->goes() && b->goes());
  const auto higher = enter(34, 2);
  const auto higher_read = read(34, 2);
  sync();
  EXPECT_FALSE(higher->told);
  EXPECT_FALSE(higher_read->told);
  turns_->answered(a.visit, kNow);
  EXPECT_FALSE(higher->told);
  turns_->answered(b.visit, kNow);
  EXPECT_TRUE(higher->goes());
  EXPECT_TRUE(higher_read->goes());
}

TEST_F(TurnsTest, NobodyWaitsForAReader) {
  const auto reader = read(33, 1);
  sync();
  ASSERT_TRUE(reader->goes());
  EXPECT_FALSE(on_disk().open);
  const auto higher = enter(34, 2);
  sync();
  EXPECT_TRUE(higher->goes());
  turns_->missed(reader.visit);
  EXPECT_THAT(turns_->unanswered(), IsEmpty());
}

TEST_F(TurnsTest, TheLowerIsRefusedWhileTheHigherStillWaits) {
  const auto lower = enter(33, 1);
  sync();
  const auto higher = enter(34, 2);
  const auto late = enter(33, 1);
  EXPECT_FALSE(late->told) << "not before it was counted";
  sync();
  EXPECT_TRUE(late->refused(Why::fenced_out));
  EXPECT_EQ(late->objection->numbers.offered, 33);
  EXPECT_EQ(late->objection->numbers.mark, 34);
  EXPECT_EQ(on_disk().refused, 1);
  turns_->answered(lower.visit, kNow);
  EXPECT_TRUE(higher->goes());
}

TEST_F(TurnsTest, OvertakenBeforeItWentIsRefused) {
  const auto lower = enter(33, 1);
  const auto higher = enter(34, 2);
  sync();
  EXPECT_FALSE(lower->goes());
  sync();
  EXPECT_TRUE(lower->refused(Why::fenced_out));
  EXPECT_TRUE(higher->goes());
  EXPECT_EQ(on_disk().refused, 1);
}

TEST_F(TurnsTest, AMissingAnswerShutsTheResourceUntilItIsCleared) {
  const auto lower = enter(33, 1);
  sync();
  const auto waiting = enter(34, 2);
  sync();
  turns_->missed(lower.visit);
  EXPECT_TRUE(waiting->refused(Why::unanswered));
  EXPECT_TRUE(enter(35, 3)->refused(Why::unanswered));
  EXPECT_TRUE(on_disk().open);
  turns_->close_all_quiet();
  EXPECT_TRUE(on_disk().open) << "quiet is not answered";
  const auto stale = enter(33, 1);
  sync();
  EXPECT_TRUE(stale->refused(Why::fenced_out)) << "a stale one hears that it is stale";
  EXPECT_THAT(turns_->unanswered(), ElementsAre(name("book")));

  ASSERT_TRUE(turns_->clear(name("book")));
  EXPECT_FALSE(on_disk().open);
  const auto next = enter(35, 3);
  sync();
  EXPECT_TRUE(next->goes());
  EXPECT_EQ(turns_->clear(name("book")).error().code, ErrorCode::invalid);
  EXPECT_EQ(turns_->clear(name("never seen")).error().code, ErrorCode::invalid);
}

TEST_F(TurnsTest, AfterACrashWhatWasOpenIsUnanswered) {
  const auto first = enter(33, 1);
  sync();
  restart();
  EXPECT_TRUE(enter(34, 2)->refused(Why::unanswered));
  ASSERT_TRUE(turns_->clear(name("book")));
  restart();
  EXPECT_THAT(turns_->unanswered(), IsEmpty());
}

TEST_F(TurnsTest, ClosedOnlyAfterAWhileWithoutRequests) {
  using std::chrono::milliseconds;
  const auto first = enter(33, 1);
  sync();
  turns_->tick(TurnClock::time_point::max());
  EXPECT_TRUE(on_disk().open) << "not answered yet";
  turns_->answered(first.visit, kNow);
  turns_->tick(kNow + milliseconds(99));
  EXPECT_TRUE(on_disk().open);
  const auto second = enter(33, 1);
  turns_->tick(kNow + milliseconds(150));
  EXPECT_TRUE(on_disk().open) << "another one is on its way";
  turns_->answered(second.visit, kNow + milliseconds(200));
  turns_->tick(kNow + milliseconds(250));
  EXPECT_TRUE(on_disk().open);
  turns_->tick(kNow + milliseconds(300));
  EXPECT_FALSE(on_disk().open);
}

TEST_F(TurnsTest, OneThatGoesAfterTheCloseNotesItAgain) {
  const auto first = enter(33, 1);
  sync();
  turns_->answered(first.visit, kNow);
  turns_->close_all_quiet();
  const auto second = enter(33, 1);
  EXPECT_TRUE(on_disk().open);
  EXPECT_FALSE(second->told);
  sync();
  EXPECT_TRUE(second->goes());
}

TEST_F(TurnsTest, AWriteThatNeverWentLeavesNothingOpen) {
  const auto overtaken = enter(34, 2);
  ASSERT_TRUE(turns_->adopt(name("book"), test_lineage(2), *TokenNumber::of(1)));
  sync();
  sync();
  ASSERT_TRUE(overtaken->refused(Why::fenced_out)) << "before it was safe on disk";
  EXPECT_TRUE(on_disk().open);
  turns_->close_all_quiet();
  EXPECT_FALSE(on_disk().open);
}

TEST_F(TurnsTest, MissingAnswersAreCounted) {
  EXPECT_EQ(turns_->misses(name("book")), 0u);
  const auto first = enter(33, 1);
  const auto second = enter(33, 1);
  sync();
  turns_->missed(first.visit);
  EXPECT_EQ(turns_->misses(name("book")), 1u);
  turns_->missed(second.visit);
  EXPECT_EQ(turns_->misses(name("book")), 2u) << "also if it was shut before";
}

TEST_F(TurnsTest, SequenceNumbersOrderOneHoldersRequests) {
  const auto first = enter(33, 1, 1);
  const auto second = enter(33, 1, 2);
  sync();
  EXPECT_TRUE(first->goes());
  EXPECT_FALSE(second->told) << "the first could land on it";
  const auto again = enter(33, 1, 2);
  const auto late = enter(33, 1, 1);
  EXPECT_FALSE(again->told) << "not before it was counted";
  sync();
  EXPECT_TRUE(again->refused(Why::out_of_order));
  EXPECT_TRUE(late->refused(Why::out_of_order));
  turns_->answered(first.visit, kNow);
  EXPECT_TRUE(second->goes());
  EXPECT_EQ(on_disk().mark.holder->sequence, 2);
  EXPECT_EQ(on_disk().refused, 2);
  restart();
  const auto remembered = enter(33, 1, 2);
  sync();
  EXPECT_TRUE(remembered->refused(Why::out_of_order));
}

TEST_F(TurnsTest, WhoBeganToNumberGoesOnNumbering) {
  const auto first = enter(33, 1, 5);
  sync();
  EXPECT_TRUE(enter(33, 1)->refused(Why::sequence_missing));
  EXPECT_TRUE(read(33, 1)->goes());
  turns_->answered(first.visit, kNow);
  const auto next = enter(34, 2);
  sync();
  EXPECT_TRUE(next->goes()) << "the next holder begins anew";
  EXPECT_EQ(on_disk().mark.holder->sequence, 0);
}

TEST_F(TurnsTest, ANumberedRequestWaitsForTheUnnumberedBeforeIt) {
  const auto first = enter(33, 1);
  sync();
  const auto second = enter(33, 1, 1);
  sync();
  EXPECT_FALSE(second->told);
  turns_->answered(first.visit, kNow);
  EXPECT_TRUE(second->goes());
}

TEST_F(TurnsTest, AdoptingWaitsForTheOldLineageToo) {
  const auto old = enter(33, 1);
  sync();
  ASSERT_TRUE(turns_->adopt(name("book"), test_lineage(2), TokenNumber::of(1).value()));
  Guest fresh;
  fresh.visit = turns_->enter(
      Ticket{name("book"), {.token = test_token(1, 9, test_lineage(2)), .writes = true}},
      [answer = fresh.answer](std::optional<Objection> objection) {
        answer->told = true;
        answer->objection = std::move(objection);
      });
  sync();
  EXPECT_FALSE(fresh->told);
  turns_->answered(old.visit, kNow);
  EXPECT_TRUE(fresh->goes());
}

TEST_F(TurnsTest, WithdrawnBeforeItWasSentLeavesNothingUnanswered) {
  const auto first = enter(33, 1);
  sync();
  const auto second = enter(34, 2);
  turns_->withdrawn(first.visit);
  sync();
  EXPECT_TRUE(second->goes());
  EXPECT_THAT(turns_->unanswered(), IsEmpty());
}

TEST_F(TurnsTest, StrangersCannotFillTheMemory) {
  for (const char* text : {"a", "b"}) {
    turns_->enter(Ticket{name(text), {.token = test_token(1, 1), .writes = true}}, [](auto) {});
  }
  const auto third = enter(33, 1);
  EXPECT_TRUE(third->refused(Why::too_many));
  EXPECT_THAT(third->objection->sentence, HasSubstr("--max-resources"));
  EXPECT_EQ(turns_->resources(), 2u);
}

}  // namespace
}  // namespace leasehold::gate
