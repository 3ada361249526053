#include "testing/values_conformance.h"

#include <gmock/gmock.h>

#include <atomic>
#include <latch>
#include <thread>

#include "testing/results.h"

namespace leasehold::testing {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ValuesConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RowConformance);

namespace {

using namespace std::chrono_literals;

Result<std::string> one_less(const std::optional<std::string>& seen) {
  return std::to_string(std::stoi(seen.value_or("100")) - 1);
}

Result<RowValue> row_with_one_less(const RowValue& seen) {
  auto less = one_less(seen.at(0));
  if (!less) return fail(std::move(less.error()));
  return RowValue{*less};
}

}  // namespace

// ---- every value ---------------------------------------------------------------------------

TEST_P(ValuesConformance, ChangesAPlainValue) {
  const auto first = user_->change(one_less);
  ASSERT_TRUE(good(first));
  EXPECT_EQ(first->value, "99");
  EXPECT_EQ(first->conflicts, 0);
  EXPECT_EQ(user_->change(one_less).value().value, "98");
  EXPECT_EQ(under_->value(), "98");
}

TEST_P(ValuesConformance, ChangeThatFailsWritesNothing) {
  const auto failed = user_->change(
      [](const auto&) -> Result<std::string> { return fail(ErrorCode::lost, "no time"); });
  EXPECT_TRUE(bad(failed, ErrorCode::lost));
  EXPECT_EQ(user_->change(one_less).value().value, "99");
}

// Once while the value may have to be made, and once while it is there.
TEST_P(ValuesConformance, WriteInBetweenIsSeenAndNotLost) {
  const auto other = under_->connect();
  for (const std::string expected : {"98", "96"}) {
    int calls = 0;
    const auto changed = user_->change([&](const std::optional<std::string>& seen) {
      if (++calls == 1) {
        EXPECT_TRUE(good(other->change(one_less)));
      }
      return one_less(seen);
    });
    ASSERT_TRUE(good(changed));
    EXPECT_EQ(changed->conflicts, 1);
    EXPECT_EQ(under_->value(), expected);
  }
}

TEST_P(ValuesConformance, WriteOfAnotherProgramInBetweenIsNotLost) {
  int calls = 0;
  const auto changed = user_->change([&](const std::optional<std::string>& seen) {
    if (++calls == 1) under_->put("50");
    return one_less(seen);
  });
  ASSERT_TRUE(good(changed));
  EXPECT_EQ(changed->conflicts, 1);
  EXPECT_EQ(under_->value(), "49");
}

TEST_P(ValuesConformance, ChangeThereAndBackIsAConflictWhereThereAreVersions) {
  under_->put("100");
  const auto there_and_back = [&] {
    under_->put("1");
    under_->put("100");
  };
  EXPECT_EQ(user_->write_after(there_and_back, "50").value(), !under_->has_versions());
  EXPECT_EQ(under_->value(), under_->has_versions() ? "100" : "50");
}

TEST_P(ValuesConformance, RacingThreadsLoseNothing) {
  constexpr int threads = 4;
  constexpr int each = 10;
  std::latch start(threads);
  std::atomic<int> done = 0;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        const auto mine = under_->connect();
        start.arrive_and_wait();
        for (int n = 0; n < each; ++n) {
          if (mine->change(one_less, {.attempts = 10'000, .wait = Millis::max()})) ++done;
        }
      });
    }
  }
  EXPECT_EQ(done, threads * each);
  EXPECT_EQ(under_->value(), std::to_string(100 - threads * each));
}

// ---- rows ----------------------------------------------------------------------------------

TEST_P(RowConformance, ChangesTheRowAndItsVersionAndNoOther) {
  ASSERT_TRUE(good(under_->change(row_with_one_less)));
  EXPECT_EQ(stock(), "99");
  EXPECT_EQ(under_->ask("SELECT version FROM stock WHERE id = 'bolt'"), "1");
  EXPECT_EQ(under_->ask("SELECT version FROM stock WHERE id = 'nut'"), "0");
}

TEST_P(RowConformance, NullGoesThereAndBack) {
  ASSERT_TRUE(good(
      under_->change([](const RowValue&) -> Result<RowValue> { return RowValue{std::nullopt}; })));
  EXPECT_EQ(under_->ask("SELECT count(*) FROM stock WHERE id = 'bolt' AND amount IS NULL"), "1");
  EXPECT_EQ(under_->read({}).value().at(0), std::nullopt);
}

TEST_P(RowConformance, WrongInputIsInvalid) {
  EXPECT_TRUE(good(under_->read({})));
  EXPECT_TRUE(bad(under_->read({.table = "stok", .columns = {}}), ErrorCode::invalid));
  EXPECT_TRUE(bad(under_->read({.key = "screw", .columns = {}}), ErrorCode::invalid));
  EXPECT_TRUE(bad(under_->read({.columns = {"amonut"}}), ErrorCode::invalid));
  EXPECT_TRUE(bad(under_->read({.columns = {}, .version_column = "amuont"}), ErrorCode::invalid));
  EXPECT_TRUE(
      bad(under_->read({.key = "0", .columns = {}, .key_column = "version"}), ErrorCode::invalid))
      << "two rows";
  EXPECT_TRUE(bad(under_->write({}, {}), ErrorCode::invalid));
  EXPECT_TRUE(bad(under_->write({}, {"1", "2"}), ErrorCode::invalid));
  EXPECT_TRUE(bad(under_->write({}, {"-1"}), ErrorCode::invalid)) << "a CHECK";
  ASSERT_EQ(under_->sql("UPDATE stock SET version = NULL WHERE id = 'bolt'"), "");
  EXPECT_TRUE(bad(under_->read({}), ErrorCode::invalid));
  EXPECT_EQ(stock(), "100");
}

TEST_P(RowConformance, RowThatIsGoneIsTold) {
  const auto changed = under_->change([&](const RowValue& seen) {
    EXPECT_EQ(under_->sql("DELETE FROM stock"), "");
    return row_with_one_less(seen);
  });
  EXPECT_TRUE(bad(changed, ErrorCode::invalid));
}

}  // namespace leasehold::testing
