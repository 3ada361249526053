// Turns the moments at which a thread ran into a measurement of its pauses. Reads no clock.
#pragma once

#include "leasehold/probe/histogram.h"
#include "leasehold/time.h"

namespace leasehold::probe {

struct Measurement {
  Nanos length{0};   // from the first look at the clock to the last
  Nanos tick{0};     // how far apart the moments are at which something wanted to run
  Histogram delays;  // how late each of these moments was served
  Histogram pauses;  // each pause once, however many moments it swallowed
  std::uint64_t suspends = 0;
  Nanos suspended{0};  // how long the machine slept, in all
};

// A look at the clocks.
struct Look {
  BootTime at;
  Nanos asleep{
      0};  // how much further the boot clock is than the monotonic one: all suspends so far
};

// Not thread safe.
class Recorder {
 public:
  // The first moment is one `tick` after `start`. `tick` must be positive.
  Recorder(Look start, Nanos tick);

  // When the thread wants to run next.
  BootTime due() const { return due_; }

  // The thread ran. All moments that were due by then were served now; one that is early is no
  // moment at all.
  void ran(Look now);

  const Measurement& measured() const { return measured_; }
  Measurement take() && { return std::move(measured_); }

 private:
  void note_suspend(Nanos asleep);

  const BootTime start_;
  BootTime due_;
  Nanos asleep_;
  Measurement measured_;
};

}  // namespace leasehold::probe
