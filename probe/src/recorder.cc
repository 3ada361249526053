#include "leasehold/probe/recorder.h"

namespace leasehold::probe {
namespace {

// The two clocks are read one after the other, so their distance jitters a little.
constexpr Nanos kClockNoise = std::chrono::milliseconds(1);

}  // namespace

Recorder::Recorder(Look start, Nanos tick)
    : start_(start.at), due_(start.at + tick), asleep_(start.asleep) {
  measured_.tick = tick;
}

void Recorder::ran(Look now) {
  measured_.length = now.at - start_;
  if (now.at < due_) return;
  const Nanos late = now.at - due_;
  const auto missed = static_cast<std::uint64_t>(late / measured_.tick);
  measured_.delays.add_falling(late, measured_.tick, missed + 1);
  measured_.pauses.add(late);
  due_ += measured_.tick * static_cast<Nanos::rep>(missed + 1);
  note_suspend(now.asleep);
}

void Recorder::note_suspend(Nanos asleep) {
  if (asleep - asleep_ < kClockNoise) return;
  ++measured_.suspends;
  measured_.suspended += asleep - asleep_;
  asleep_ = asleep;
}

}  // namespace leasehold::probe
