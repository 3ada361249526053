#include "../order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../assemble.h"
#include "leasehold/drill/checker.h"

namespace leasehold::drill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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
    return record;
  }
  void put(Record record, std::int64_t time, Kind kind) {
    record.time = time;
    record.kind = kind;
    ASSERT_TRUE(history_.append(record));
  }
  History history_;
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

}  // namespace
}  // namespace leasehold::drill
