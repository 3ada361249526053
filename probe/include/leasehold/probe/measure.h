// Measures the pauses of this machine as a thread meets them.
#pragma once

#include <atomic>
#include <stop_token>

#include "leasehold/probe/recorder.h"

namespace leasehold::probe {

enum class Waiting {
  sleep,  // between two moments, as a thread does that renews leases
  spin,   // not at all: as a thread that computes; keeps one processor busy
};

struct MeasureOptions {
  Nanos duration = std::chrono::seconds(10);
  Nanos tick = std::chrono::milliseconds(1);
  Waiting waiting = Waiting::sleep;
};

// Written while measuring; read by any thread.
struct Progress {
  std::atomic<Nanos::rep> measured{0};
  std::atomic<Nanos::rep> worst{0};
};

// Measures on the calling thread, which blocks for the duration; less if `stop` is requested, which
// is seen at the next tick. Counts time on the boot clock, as leases do: a suspend of the machine
// is a pause.
Measurement measure(const MeasureOptions& options, const std::stop_token& stop, Progress& progress);

}  // namespace leasehold::probe
