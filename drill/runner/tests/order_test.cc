#include "../order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "../assemble.h"
#include "../chance.h"
#include "leasehold/drill/checker.h"

namespace leasehold::drill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint64_t kSeeds = 500;

template <class Id>
Id id_of(int number) {
  typename Id::Bytes bytes{};
  bytes[15] = static_cast<std::uint8_t>(number);
  return Id(bytes);
}

// What workers wrote down about one lock "a". The number of a worker is its request, too.
class Accesses {
 public:
  // Asked at `asked`; `answered` 0: never.
  Accesses& read(int worker, std::int64_t token, std::int64_t asked, std::int64_t answered,
                 std::uint64_t value, Kind how = Kind::ok) {
    Record record = base(worker, token, Operation::read);
    put(record, asked, Kind::invoke);
    record.value = value;
    if (answered > 0) put(record, answered, how);
    return *this;
  }
  Accesses& write(int worker, std::int64_t token, std::int64_t asked, std::int64_t answered,
                  std::uint64_t from, std::uint64_t value, Kind how = Kind::ok) {
    Record record = base(worker, token, Operation::write);
    record.base = from;
    record.value = value;
    record.sequence = 1;
    put(record, asked, Kind::invoke);
    if (answered > 0) put(record, answered, how);
    return *this;
  }
  // The lock was granted at the beginning of time.
  Accesses& granted(int worker, std::int64_t token) {
    Record record = base(worker, token, Operation::acquire);
    put(record, worker, Kind::ok);
    return *this;
  }

  // Of the next ones.
  Accesses& in_slot(std::int64_t number) {
    slot_ = Slot{number};
    return *this;
  }

  ResourceLog order(std::unordered_map<std::string, std::uint64_t> last) {
    return order_accesses(history_, last);
  }
  ResourceLog order(std::uint64_t last) { return order_accesses(history_, {{"a", last}}); }

  // "r10 w20 x30": what was read, written and refused, in this order.
  std::string story(std::uint64_t last) {
    std::string text;
    for (const Record& record : order(last).records) {
      text += (text.empty() ? "" : " ");
      text += record.kind == Kind::refuse ? "x" : record.operation == Operation::read ? "r" : "w";
      text += std::to_string(record.value);
    }
    return text;
  }
  std::vector<std::string> broken(std::uint64_t last) {
    const ResourceLog log = order(last);
    auto whole = assemble(history_, log, {});
    EXPECT_TRUE(whole);
    std::vector<std::string> checks;
    for (const Violation& each : check(*whole).violations) {
      checks.emplace_back(to_string(each.check));
    }
    return checks;
  }

 private:
  Record base(int worker, std::int64_t token, Operation operation) {
    Record record;
    record.process = history_.process("worker-" + std::to_string(worker));
    record.lock = history_.lock("a");
    record.request = history_.request(id_of<RequestId>(worker));
    record.store = token > 0 ? history_.store(id_of<StoreId>(1)) : StoreRef{0};
    record.token = token;
    record.operation = operation;
    if (slot_) record.set_mode(Mode::permit_of(2), slot_);
    return record;
  }
  void put(Record record, std::int64_t time, Kind kind) {
    record.time = time;
    record.kind = kind;
    ASSERT_TRUE(history_.append(record));
  }
  History history_;
  std::optional<Slot> slot_;
};

TEST(OrderTest, FollowsWhatWasSeenNotWhenItWasAnswered) {
  Accesses accesses;
  accesses.granted(1, 1).granted(2, 2);
  accesses.read(1, 1, 10, 12, 0).write(1, 1, 20, 90, 0, 100);  // the answer comes late
  accesses.read(2, 2, 30, 40, 100).write(2, 2, 50, 60, 100, 200);
  EXPECT_EQ(accesses.story(200), "r0 w100 r100 w200");
  EXPECT_THAT(accesses.broken(200), IsEmpty());
  EXPECT_EQ(accesses.order(200).writes, 2u);
  EXPECT_EQ(accesses.order(200).lost, 0u);
}

TEST(OrderTest, SlotsAreResourcesOfTheirOwn) {
  Accesses accesses;
  accesses.in_slot(0).granted(1, 1).in_slot(1).granted(2, 2);
  accesses.in_slot(1).read(2, 2, 10, 11, 0).write(2, 2, 12, 13, 0, 200);
  accesses.in_slot(0).read(1, 1, 20, 21, 0).write(1, 1, 22, 23, 0, 100);
  const ResourceLog log = accesses.order({{"a#0", 100}, {"a#1", 200}});
  EXPECT_EQ(log.writes, 2u);
  EXPECT_EQ(log.lost, 0u);
  EXPECT_EQ(log.foreign_values, 0u);
  std::vector<std::pair<std::uint16_t, std::uint64_t>> written;
  for (const Record& record : log.records) {
    if (record.operation == Operation::write) written.emplace_back(record.slot, record.value);
  }
  EXPECT_THAT(written, ElementsAre(std::pair(1, 100), std::pair(2, 200)));
  EXPECT_EQ(accesses.order({{"a#0", 200}, {"a#1", 200}}).lost, 1u);
}

TEST(OrderTest, RefusalComesAfterTheOneWhoEntered) {
  Accesses accesses;
  accesses.granted(1, 1).granted(2, 2);
  accesses.read(1, 1, 10, 12, 0);
  accesses.read(2, 2, 20, 45, 0);  // answered after the refusal that it caused
  accesses.write(1, 1, 30, 40, 0, 100, Kind::fail);
  EXPECT_EQ(accesses.story(0), "r0 r0 x100");
  EXPECT_THAT(accesses.broken(0), IsEmpty());
}

TEST(OrderTest, WriteWithoutAnAnswerWasDoneIfSomebodySawIt) {
  Accesses accesses;
  accesses.granted(1, 1).granted(2, 2);
  accesses.read(1, 1, 10, 12, 0).write(1, 1, 20, 0, 0, 100);
  accesses.read(2, 2, 30, 40, 100);
  EXPECT_EQ(accesses.story(100), "r0 w100 r100");
  EXPECT_THAT(accesses.broken(100), IsEmpty());
  EXPECT_EQ(accesses.order(100).writes, 0u);  // nobody was told
}

TEST(OrderTest, WriteWithoutAnAnswerThatNobodySawWasNotDone) {
  Accesses accesses;
  accesses.granted(1, 1).granted(2, 2);
  accesses.read(1, 1, 10, 12, 0).write(1, 1, 20, 25, 0, 100, Kind::unknown);
  accesses.read(2, 2, 30, 40, 0).write(2, 2, 50, 60, 0, 200);
  EXPECT_EQ(accesses.story(200), "r0 r0 w200");
  EXPECT_THAT(accesses.broken(200), IsEmpty());
}

TEST(OrderTest, WriteThatWasRepeatedIsOne) {
  Accesses accesses;
  accesses.granted(1, 1);
  accesses.read(1, 1, 10, 12, 0).write(1, 1, 20, 25, 0, 100, Kind::unknown);
  accesses.write(1, 1, 30, 40, 0, 100);
  EXPECT_THAT(accesses.broken(100), IsEmpty());
  EXPECT_EQ(accesses.order(100).writes, 1u);
  EXPECT_EQ(accesses.order(100).lost, 0u);
}

// The first try was not done, or nobody could tell; the second one was, before the next holder.
TEST(OrderTest, WriteThatWasRepeatedIsWhereItWasAnswered) {
  Accesses accesses;
  accesses.granted(1, 1).granted(2, 2);
  accesses.read(1, 1, 10, 12, 0).write(1, 1, 20, 25, 0, 100, Kind::unknown);
  accesses.write(1, 1, 30, 60, 0, 100);
  accesses.read(2, 2, 40, 70, 100).write(2, 2, 80, 90, 100, 200);
  EXPECT_EQ(accesses.story(200), "r0 w100 r100 w200");
  EXPECT_THAT(accesses.broken(200), IsEmpty());
}

TEST(OrderTest, WriteThatWasSentTwiceAndSeenIsOne) {
  Accesses accesses;
  accesses.granted(1, 1).granted(2, 2);
  accesses.read(1, 1, 10, 12, 0).write(1, 1, 20, 25, 0, 100, Kind::unknown);
  accesses.write(1, 1, 30, 60, 0, 100, Kind::fail);  // the first was done, and 2 has entered
  accesses.read(2, 2, 40, 50, 100).write(2, 2, 80, 90, 100, 200);
  EXPECT_EQ(accesses.story(200), "r0 w100 r100 x100 w200");
  EXPECT_THAT(accesses.broken(200), IsEmpty());
}

TEST(OrderTest, RefusalOfTheLastIsExplainedByOneWhoWasNotTold) {
  Accesses accesses;
  accesses.granted(1, 1).granted(2, 2);
  accesses.read(1, 1, 10, 12, 0);
  accesses.read(2, 2, 20, 25, 0, Kind::unknown);
  accesses.write(1, 1, 30, 40, 0, 100, Kind::fail);
  EXPECT_EQ(accesses.story(0), "r0 r0 x100");
  EXPECT_THAT(accesses.broken(0), IsEmpty());
}

TEST(OrderTest, RefusalThatNobodyExplainsIsF1) {
  Accesses accesses;
  accesses.granted(1, 1);
  accesses.read(1, 1, 10, 12, 0).write(1, 1, 30, 40, 0, 100, Kind::fail);
  EXPECT_THAT(accesses.broken(0), ElementsAre("F1"));
}

TEST(OrderTest, StaleWriteOverTheSuccessorsIsSeenAndCounted) {
  Accesses accesses;
  accesses.granted(1, 1).granted(2, 2);
  accesses.read(1, 1, 10, 12, 0);
  accesses.read(2, 2, 20, 22, 0).write(2, 2, 30, 32, 0, 200);
  accesses.write(1, 1, 40, 42, 0, 100);
  EXPECT_THAT(accesses.broken(100), ElementsAre("I2", "I4"));
  EXPECT_EQ(accesses.order(100).writes, 2u);
  EXPECT_EQ(accesses.order(100).lost, 1u);
}

TEST(OrderTest, ReadOfAnOldValueIsSeen) {
  Accesses accesses;
  accesses.granted(1, 1).granted(2, 2);
  accesses.read(1, 1, 10, 12, 0).write(1, 1, 20, 22, 0, 100);
  accesses.read(2, 2, 30, 32, 0).write(2, 2, 40, 42, 0, 200);
  EXPECT_THAT(accesses.broken(200), ElementsAre("I4", "I4"));
  EXPECT_EQ(accesses.order(200).lost, 1u);
}

TEST(OrderTest, LastValueThatNobodyWroteIsSeen) {
  Accesses accesses;
  accesses.granted(1, 1);
  accesses.read(1, 1, 10, 12, 0).write(1, 1, 20, 22, 0, 100);
  EXPECT_EQ(accesses.order(999).foreign_values, 1u);
  EXPECT_EQ(accesses.order(999).lost, 1u);
  EXPECT_EQ(accesses.order(100).foreign_values, 0u);
}

TEST(OrderTest, ClaimsAreJudgedWithoutTokens) {
  Accesses good;
  good.granted(1, 0).granted(2, 0);
  good.read(1, 0, 10, 12, 0).read(2, 0, 20, 22, 0);
  good.write(1, 0, 30, 32, 0, 100, Kind::fail).write(2, 0, 40, 42, 0, 200);
  EXPECT_EQ(good.story(200), "r0 r0 x100 w200");
  EXPECT_THAT(good.broken(200), IsEmpty());
  Accesses bad;
  bad.granted(1, 0).granted(2, 0);
  bad.read(1, 0, 10, 12, 0).read(2, 0, 20, 22, 0);
  bad.write(1, 0, 30, 32, 0, 100).write(2, 0, 40, 42, 0, 200);
  EXPECT_THAT(bad.broken(200), ElementsAre("I2", "I4"));
}

// Two leases overlap, and so do the calls by which their holders enter. Who came last is not in the
// clocks, but in whom the resource let write.
TEST(OrderTest, OfOverlappingClaimsTheOneThatWroteEnteredLast) {
  Accesses accesses;
  accesses.granted(1, 0).granted(2, 0);
  accesses.read(1, 0, 10, 30, 0).read(2, 0, 15, 20, 0);
  accesses.write(1, 0, 40, 42, 0, 100).write(2, 0, 50, 52, 0, 200, Kind::fail);
  EXPECT_EQ(accesses.story(100), "r0 r0 w100 x200");
  EXPECT_THAT(accesses.broken(100), IsEmpty());
}

// That 1 was refused later says nothing of the turn before.
TEST(OrderTest, ClaimThatWritesAgainIsJudgedTurnByTurn) {
  Accesses accesses;
  accesses.granted(1, 0).granted(2, 0).granted(3, 0);
  accesses.read(1, 0, 15, 20, 0).read(2, 0, 10, 30, 0);
  accesses.write(1, 0, 40, 42, 0, 100);
  accesses.read(1, 0, 50, 52, 100).read(3, 0, 60, 62, 100);
  accesses.write(1, 0, 70, 72, 100, 101, Kind::fail).write(3, 0, 80, 82, 100, 300);
  accesses.write(2, 0, 90, 92, 0, 200, Kind::fail);
  EXPECT_EQ(accesses.story(300), "r0 r0 w100 r100 r100 x101 w300 x200");
  EXPECT_THAT(accesses.broken(300), IsEmpty());
}

TEST(OrderTest, OfOverlappingClaimsTheOneThatWasRefusedFirstEnteredFirst) {
  Accesses accesses;
  accesses.granted(1, 0).granted(2, 0).granted(3, 0);
  accesses.read(1, 0, 10, 30, 0).read(2, 0, 12, 28, 0);
  accesses.write(2, 0, 35, 40, 0, 200, Kind::fail);  // so 1 entered after 2
  accesses.read(3, 0, 100, 110, 0);
  accesses.write(1, 0, 120, 130, 0, 100, Kind::fail).write(3, 0, 140, 150, 0, 300);
  EXPECT_EQ(accesses.story(300), "r0 r0 x200 r0 x100 w300");
  EXPECT_THAT(accesses.broken(300), IsEmpty());
}

TEST(OrderTest, ClaimWhoseReadWasRefusedHadTakenOver) {
  Accesses accesses;
  accesses.granted(1, 0).granted(2, 0).granted(3, 0);
  accesses.read(1, 0, 10, 12, 0);
  accesses.read(2, 0, 20, 60, 0, Kind::fail);  // claimed, and lost it to 3 before it read
  accesses.write(1, 0, 30, 40, 0, 100, Kind::fail);
  accesses.read(3, 0, 50, 55, 0).write(3, 0, 70, 80, 0, 300);
  EXPECT_THAT(accesses.broken(300), IsEmpty());
}

TEST(OrderTest, RefusalMayHaveComeAfterOneThatWasAskedForLater) {
  Accesses accesses;
  accesses.granted(1, 0).granted(2, 0).granted(3, 0);
  accesses.read(1, 0, 10, 12, 0).read(2, 0, 20, 22, 0);
  accesses.write(2, 0, 30, 60, 0, 200, Kind::fail);
  accesses.write(1, 0, 31, 33, 0, 100, Kind::fail);
  accesses.read(3, 0, 35, 50, 0);  // took over from 2
  EXPECT_EQ(accesses.story(0), "r0 r0 x100 r0 x200");
  EXPECT_THAT(accesses.broken(0), IsEmpty());
}

TEST(OrderTest, OneWhoOnlyWroteDoesNotExplainARefusedClaim) {
  Accesses accesses;
  accesses.granted(1, 0).granted(2, 0);
  accesses.read(2, 0, 10, 12, 0).read(1, 0, 14, 16, 0);
  accesses.write(2, 0, 20, 25, 0, 200, Kind::unknown);  // had entered before 1
  accesses.write(1, 0, 30, 40, 0, 100, Kind::fail);
  EXPECT_THAT(accesses.broken(0), ElementsAre("F1"));
}

TEST(OrderTest, ClaimWhoseReadWasRefusedForNothingIsF1) {
  Accesses accesses;
  accesses.granted(1, 0).granted(2, 0);
  accesses.read(1, 0, 10, 12, 0);
  accesses.read(2, 0, 20, 60, 0, Kind::fail);
  accesses.write(1, 0, 30, 40, 0, 100, Kind::fail);
  EXPECT_THAT(accesses.broken(0), ElementsAre("F1"));
}

// A resource, and clients whose calls take so long that many overlap. Of a call only its beginning
// and its end are known to the drill, not when it was done.
class Turmoil {
 public:
  struct Resource {
    bool claims = false;        // instead of tokens
    bool lets_anybody = false;  // write, whoever has entered since
  };
  Turmoil(std::uint64_t seed, Resource resource) : chance_(seed), resource_(resource) {
    for (int worker = 0; worker < kWorkers; ++worker) workers_[worker].next = 100 + some(100);
    for (int i = 0; i < kSteps; ++i) step();
    for (const Worker& it : workers_) {
      if (it.doing == Doing::claimed) accesses_.read(it.request, 0, it.asked, kNoAnswer, 0);
    }
  }

  std::vector<std::string> broken() { return accesses_.broken(value_); }
  bool an_update_was_lost() const { return lost_; }

 private:
  static constexpr int kWorkers = 4;
  static constexpr int kSteps = 60;
  static constexpr std::int64_t kNoAnswer = 0;
  enum class Doing { nothing, claimed, entered };
  struct Worker {
    std::int64_t next = 0;      // when the next thing is done
    std::int64_t answered = 0;  // the last call
    Doing doing = Doing::nothing;
    int request = 0;
    std::int64_t asked = 0;
    std::uint64_t read = 0;
  };

  std::int64_t some(std::uint64_t limit) { return static_cast<std::int64_t>(chance_.below(limit)); }
  std::int64_t token(const Worker& it) const { return resource_.claims ? 0 : it.request; }

  void step() {
    Worker& it =
        *std::min_element(workers_.begin(), workers_.end(),
                          [](const Worker& a, const Worker& b) { return a.next < b.next; });
    now_ = std::max(it.next, now_ + 1);
    if (it.doing == Doing::entered) return write(it);
    if (it.doing == Doing::claimed) return read(it);
    claim(it);
    const bool reads_later = resource_.claims && chance_.one_in(3);
    if (!reads_later) return read(it);
    it.doing = Doing::claimed;
    it.next = now_ + 1 + some(40);
  }

  void ask(Worker& it) { it.asked = std::max(it.answered + 1, now_ - some(80)); }
  void answer(Worker& it) {
    it.answered = now_ + some(80);
    it.next = it.answered + 1 + some(60);
  }
  Kind told(bool accepted) {
    return chance_.one_in(12) ? Kind::unknown : accepted ? Kind::ok : Kind::fail;
  }

  void claim(Worker& it) {
    ask(it);
    it.request = holder_ = ++requests_;
    accesses_.granted(it.request, token(it));
  }

  void read(Worker& it) {
    answer(it);
    const Kind how = told(it.request == holder_);
    it.read = value_;
    accesses_.read(it.request, token(it), it.asked, it.answered, value_, how);
    it.doing = how == Kind::ok ? Doing::entered : Doing::nothing;
  }

  void write(Worker& it) {
    ask(it);
    answer(it);
    const bool accepted = it.request == holder_ || resource_.lets_anybody;
    const Kind how = told(accepted);
    const auto mine = static_cast<std::uint64_t>(it.request) + 1000;
    if (accepted && it.read != value_) lost_ = true;
    if (accepted) value_ = mine;
    accesses_.write(it.request, token(it), it.asked, it.answered, it.read, mine, how);
    it.doing = Doing::nothing;
  }

  Chance chance_;
  const Resource resource_;
  Accesses accesses_;
  std::array<Worker, kWorkers> workers_;
  std::int64_t now_ = 0;
  int requests_ = 0;
  int holder_ = 0;
  std::uint64_t value_ = 0;
  bool lost_ = false;
};

TEST(OrderTest, RightResourceIsNeverBlamed) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    EXPECT_THAT(Turmoil(seed, {.claims = false}).broken(), IsEmpty()) << "tokens, seed " << seed;
    EXPECT_THAT(Turmoil(seed, {.claims = true}).broken(), IsEmpty()) << "claims, seed " << seed;
  }
}

TEST(OrderTest, ResourceThatLosesAnUpdateIsAlwaysBlamed) {
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const bool claims : {false, true}) {
      Turmoil turmoil(seed, {.claims = claims, .lets_anybody = true});
      if (!turmoil.an_update_was_lost()) continue;
      ++lost;
      EXPECT_THAT(turmoil.broken(), Not(IsEmpty())) << (claims ? "claims" : "tokens") << seed;
    }
  }
  EXPECT_GT(lost, 100);
}

}  // namespace
}  // namespace leasehold::drill
