#include "kept_turns.h"

#include <gtest/gtest.h>

#include <optional>

#include "fake_store.h"
#include "testing/results.h"

namespace leasehold::detail {
namespace {

using namespace std::chrono_literals;
using namespace leasehold::testing;

class KeptTurnsTest : public LockPatternTest {
 protected:
  static constexpr Millis kPatience = 30s;
  Lease turn(std::string_view lock) { return client.acquire(lock).value(); }
};

TEST_F(KeptTurnsTest, AreGivenBackWhenTheirIntervalIsOver) {
  KeptTurns an_hour;
  ASSERT_TRUE(good(an_hour.keep(turn("long"), 1h)));
  KeptTurns brief;
  const BootTime began = BootClock::now();
  ASSERT_TRUE(good(brief.keep(turn("one"), 100ms)));
  ASSERT_TRUE(good(brief.keep(turn("two"), 100ms)));
  faults->wait_for_answers(Operation::release, 2, kPatience);
  EXPECT_GE(BootClock::now() - began, 100ms);
  EXPECT_TRUE(is_free("one") && is_free("two"));
  EXPECT_FALSE(is_free("long"));
}

TEST_F(KeptTurnsTest, AreGivenBackEarlyWhenNobodyKeepsThem) {
  std::optional<KeptTurns> turns(std::in_place);
  ASSERT_TRUE(good(turns->keep(turn("one"), 1h)));
  turns.reset();
  faults->wait_for_answers(Operation::release, 1, kPatience);
  EXPECT_TRUE(is_free("one"));
}

}  // namespace
}  // namespace leasehold::detail
