#include "leasehold/time.h"

#include <ctime>

namespace leasehold {
namespace {

class MachineClock final : public Clock {
 public:
  BootTime now() const override { return BootClock::now(); }
};

}  // namespace

BootTime BootClock::now() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return BootTime(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

const Clock& system_clock() {
  static const MachineClock clock;
  return clock;
}

}  // namespace leasehold
