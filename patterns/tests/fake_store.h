// A client whose store is in memory, with faults, and with a clock of its own if a test wants one.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <stop_token>
#include <utility>

#include "leasehold/client.h"
#include "testing/faulty_store.h"
#include "testing/memory_store.h"
#include "testing/virtual_time.h"

namespace leasehold::testing {

class LockPatternTest : public ::testing::Test {
 protected:
  explicit LockPatternTest(const Clock& time = system_clock(),
                           Guarantee guarantee = Guarantee::correctness)
      : LockPatternTest(time, std::make_unique<MemoryStore>(guarantee)) {}

  // Returns when it has been requested.
  static void wait_for(const std::stop_token& stop) {
    std::promise<void> told;
    const std::stop_callback callback(stop, [&] { told.set_value(); });
    EXPECT_EQ(told.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready)
        << "it was not told";
  }
  static LockName name(std::string_view text) { return LockName::parse(text).value(); }

  // Whether somebody else could have it now.
  bool is_free(std::string_view lock) { return !memory.holder(name(lock)); }

  std::shared_ptr<Faults> faults = std::make_shared<Faults>();
  MemoryStore& memory;
  Client client;

 private:
  LockPatternTest(const Clock& time, std::unique_ptr<MemoryStore> store)
      : memory(*store), client(with_faults(std::move(store), faults), {.clock = &time}) {}
};

// Leases of hours: what is due by the real clock is not.
class StandingClock {
 protected:
  FakeClock clock{BootClock::now()};
};
class StandingTimeTest : protected StandingClock, public LockPatternTest {
 protected:
  StandingTimeTest() : LockPatternTest(clock) {}
};

}  // namespace leasehold::testing
