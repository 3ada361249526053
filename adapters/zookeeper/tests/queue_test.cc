#include "queue.h"

#include <gmock/gmock.h>

namespace leasehold::zookeeper {
namespace {

constexpr Mode kAlone = Mode::exclusive();
constexpr Mode kShared = Mode::shared();

// One after the other, from the number 0 on; and what else is in the folder.
std::vector<std::string> names_of(const std::vector<Mode>& modes,
                                  std::vector<std::string> names = {}) {
  for (std::size_t i = 0; i < modes.size(); ++i) {
    RequestId::Bytes bytes{};
    bytes[0] = static_cast<unsigned char>(i);
    const std::string number = std::to_string(i);
    names.push_back(node_prefix(RequestId(bytes), Recipe::curator, modes[i]) +
                    std::string(10 - number.size(), '0') + number);
  }
  return names;
}

// Whether each fits: '+' or '-'.
std::string fits(const std::vector<std::string>& names) {
  const Queue queue(names);
  std::string all;
  for (std::size_t i = 0; i < queue.size(); ++i) all += queue.fits(i) ? '+' : '-';
  return all;
}

TEST(Queue, AModeFitsBesideItsOwnKindAndNobodyOvertakes) {
  const Mode two = Mode::permit_of(2);
  EXPECT_EQ(fits(names_of({kAlone, kAlone, kShared})), "+--");
  EXPECT_EQ(fits(names_of({kShared, kShared, kAlone, kShared})), "++--");
  EXPECT_EQ(fits(names_of({two, two, two, two})), "++--");
  EXPECT_EQ(fits(names_of({two, kAlone, two})), "+--") << "a Curator mutex is no less in the way";
  EXPECT_EQ(fits(names_of({two, two, two, two}, {"permits-3"})), "+++-");
  EXPECT_EQ(fits(names_of({two, two, two, two}, {"permits-1"})), "+---");
  EXPECT_EQ(fits({"lock-0000000000", "lock-0000000001"}), "+-");
}

TEST(Queue, TheUseIsThatOfTheFirstUnlessAnOperatorHasSetIt) {
  const auto free = names_of({kShared});
  EXPECT_EQ(Queue(free).use_before(0), std::nullopt);
  const auto used = names_of({kShared, Mode::permit_of(2), kAlone});
  EXPECT_EQ(Queue(used).use_before(2), kShared) << "not that of one who will be turned away";
  const auto set = names_of({kAlone, kAlone}, {"permits-7"});
  EXPECT_EQ(Queue(set).use_before(0), Mode::permit_of(7));
}

TEST(Queue, OneWaitsForTheLastInItsWay) {
  const auto mixed = names_of({kAlone, kShared, kShared, kAlone, kAlone});
  const Queue queue(mixed);
  EXPECT_EQ(queue.waits_for(1, {}), 0u);
  EXPECT_EQ(queue.waits_for(2, {}), 0u) << "not for the reader before it";
  EXPECT_EQ(queue.waits_for(3, {}), 2u);
  EXPECT_EQ(queue.waits_for(4, {}), 3u);
}

TEST(Queue, ThePermitWhoseTurnIsNextWaitsForAnybody) {
  const Mode two = Mode::permit_of(2);
  const std::vector<Mode> modes = {two, two, two, two};
  const auto names = names_of(modes);
  EXPECT_EQ(Queue(names).waits_for(2, {}), std::nullopt);
  EXPECT_EQ(Queue(names).waits_for(3, {}), 2u);
  const Mode three = Mode::permit_of(3);
  Slots taken;
  for (std::int64_t number = 0; number < 3; ++number) taken.give(number);
  const auto fewer = names_of({three, three, three, three}, {"permits-2"});
  EXPECT_EQ(Queue(fewer).waits_for(3, taken), std::nullopt) << "nobody waits before it";
  const auto behind = names_of({two, two, kAlone, two});
  EXPECT_EQ(Queue(behind).waits_for(3, {}), 2u);
}

TEST(Queue, OnePermitIsHeldInTurnWithoutAWord) {
  const Mode one = Mode::permit_of(1);
  const auto names = names_of({one, one, one});
  EXPECT_TRUE(Queue(names).has_one_permit());
  EXPECT_EQ(fits(names), "+--");
  EXPECT_EQ(Queue(names).waits_for(1, {}), 0u);
  EXPECT_EQ(Queue(names).waits_for(2, {}), 1u);
  EXPECT_TRUE(Queue(names).holds(0, {}));
  EXPECT_EQ(Queue(names).slot_of(0, {}), Slot{0});
  Slots later;
  for (std::int64_t number = 5; number >= 0; --number) later.give(number);
  EXPECT_EQ(Queue(names).slot_of(0, later), Slot{5}) << "as it was written down before";
  const auto fewer = names_of({Mode::permit_of(3), one}, {"permits-1"});
  EXPECT_TRUE(Queue(fewer).has_one_permit());
  const auto cleared = names_of({one, Mode::permit_of(3)});
  EXPECT_FALSE(Queue(cleared).has_one_permit()) << "the second may be taking a slot";
}

TEST(Slots, TheLowestFreeOneIsGivenAndThatOfOneWhoHasGoneIsFree) {
  const Mode four = Mode::permit_of(4);
  Slots slots;
  for (std::int64_t number = 0; number < 3; ++number) slots.give(number);
  std::vector<std::string> names = names_of({four, four, four, four, four});
  names.erase(names.begin() + 1);
  const Slots next = Queue(names).with_slots_up_to(2, slots);
  EXPECT_EQ(next.of(0), Slot{0});
  EXPECT_EQ(next.of(1), std::nullopt);
  EXPECT_EQ(next.of(2), Slot{2});
  EXPECT_EQ(next.of(3), Slot{1});
  EXPECT_EQ(next.of(4), std::nullopt) << "it is not its turn to be given one";
}

TEST(Slots, WhoComesBeforeIsGivenOneBefore) {
  const Mode two = Mode::permit_of(2);
  const auto names = names_of({two, two});
  const Slots slots = Queue(names).with_slots_up_to(1, {});
  EXPECT_EQ(slots.of(0), Slot{0});
  EXPECT_EQ(slots.of(1), Slot{1});
}

TEST(Slots, ComeBackAsTheyWereWrittenAndOtherDataIsNone) {
  Slots slots;
  for (const std::int64_t number : {7L, -2147483648L, 12L}) slots.give(number);
  EXPECT_EQ(slots.str(), "leasehold 2 0:7 1:-2147483648 2:12");
  EXPECT_EQ(Slots::parse(slots.str())->str(), slots.str());
  for (const char* foreign : {"", "10.0.0.7", "leasehold"}) {
    EXPECT_EQ(Slots::parse(foreign)->str(), "leasehold 2") << foreign;
  }
  for (const char* damaged :
       {"leasehold 3 0:7", "leasehold 2 0:7 0:8", "leasehold 2 0:7 1:7", "leasehold 2 -1:7",
        "leasehold 2 10000:7", "leasehold 2 0:7 ", "leasehold 2 0:", "leasehold 20:7"}) {
    EXPECT_FALSE(Slots::parse(damaged)) << damaged;
  }
}

}  // namespace
}  // namespace leasehold::zookeeper
