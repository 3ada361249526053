#include "leasehold/compare_and_set.h"

#include <gmock/gmock.h>

#include <functional>

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// A number in memory, with somebody else who may write between our read and our write.
class FakeCell {
 public:
  using Value = int;
  struct Seen {
    int value = 0;
    int version = 0;
  };

  Result<Seen> read() const {
    ++reads;
    return Seen{value, version};
  }
  Result<bool> write(const Seen& seen, const int& wanted) const {
    if (before_write) before_write();
    if (lost_replies > 0) return fail(ErrorCode::outcome_unknown, "the reply was lost");
    if (seen.version != version) return false;
    value = wanted;
    ++version;
    return true;
  }
  void other_writes(int number) const {
    value = number;
    ++version;
  }

  mutable int value = 0;
  mutable int version = 0;
  mutable int reads = 0;
  int lost_replies = 0;
  std::function<void()> before_write;
};

Result<int> plus_one(int seen) {
  return seen + 1;
}

TEST(CompareAndSet, WritesWhatTheChangeGives) {
  const FakeCell cell;
  const auto changed = compare_and_set(cell, plus_one);
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->value, 1);
  EXPECT_EQ(changed->conflicts, 0);
  EXPECT_EQ(cell.value, 1);
}

TEST(CompareAndSet, ConflictReadsAgainAndIsCounted) {
  FakeCell cell;
  int others = 3;
  cell.before_write = [&] {
    if (others-- > 0) cell.other_writes(cell.value + 10);
  };
  const auto changed = compare_and_set(cell, plus_one);
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->value, 31) << "nothing that the others wrote is lost";
  EXPECT_EQ(changed->conflicts, 3);
  EXPECT_EQ(cell.reads, 4);
}

TEST(CompareAndSet, AttemptsAreBounded) {
  FakeCell cell;
  cell.before_write = [&] { cell.other_writes(7); };
  const auto changed = compare_and_set(cell, plus_one, {.attempts = 3, .wait = Millis::max()});
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::busy);
  EXPECT_THAT(changed.error().message, HasSubstr("3 times"));
  EXPECT_EQ(cell.reads, 3);
  EXPECT_EQ(cell.value, 7);
}

TEST(CompareAndSet, TimeIsBounded) {
  FakeCell cell;
  cell.before_write = [&] { cell.other_writes(7); };
  const auto changed = compare_and_set(cell, plus_one, {.attempts = 1'000'000, .wait = 20ms});
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::timeout);
}

TEST(CompareAndSet, StopEndsIt) {
  FakeCell cell;
  std::stop_source source;
  cell.before_write = [&] {
    cell.other_writes(7);
    if (cell.reads == 2) source.request_stop();
  };
  const auto changed = compare_and_set(
      cell, plus_one, {.attempts = 1000, .wait = Millis::max(), .stop = source.get_token()});
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::cancelled);
  EXPECT_EQ(cell.reads, 2);
}

TEST(CompareAndSet, ErrorOfTheChangeEndsItAndWritesNothing) {
  const FakeCell cell;
  const auto changed = compare_and_set(
      cell, [](int) -> Result<int> { return fail(ErrorCode::invalid, "none left"); });
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().message, "none left");
  EXPECT_EQ(cell.version, 0);
}

TEST(CompareAndSet, LostReplyIsNotTriedAgain) {
  FakeCell cell;
  cell.lost_replies = 1;
  const auto changed = compare_and_set(cell, plus_one);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::outcome_unknown);
  EXPECT_EQ(cell.reads, 1);
}

TEST(CompareAndSet, NoAttemptIsInvalid) {
  const FakeCell cell;
  const auto changed = compare_and_set(cell, plus_one, {.attempts = 0});
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::invalid);
  EXPECT_EQ(cell.reads, 0);
}

}  // namespace
}  // namespace leasehold
