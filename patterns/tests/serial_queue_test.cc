#include "leasehold/serial_queue.h"

#include <gmock/gmock.h>

namespace leasehold {
namespace {

TEST(SerialQueueTest, PauseForEverIsALongOne) {
  EXPECT_GT(pause_after(3, {.first_pause = Millis::max(), .longest_pause = Millis::max()}),
            std::chrono::years(1));
  EXPECT_EQ(pause_after(3, {.first_pause = Millis::max(), .longest_pause = Millis(7)}), Millis(7));
}

}  // namespace
}  // namespace leasehold
