#include "leasehold/probe/measure.h"

#include <time.h>

#include <algorithm>

namespace leasehold::probe {
namespace {

constexpr auto kGoodEnough = std::chrono::microseconds(50);

Nanos monotonic() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(now.tv_sec) + Nanos(now.tv_nsec);
}

// A pause between the two readings would look like a suspend: the reading that took least counts.
Nanos asleep_so_far() {
  Nanos narrowest = Nanos::max();
  Nanos asleep{0};
  for (int i = 0; i < 20 && narrowest > kGoodEnough; ++i) {
    const Nanos before = monotonic();
    const Nanos boot = BootClock::now().time_since_epoch();
    const Nanos apart = monotonic() - before;
    if (apart >= narrowest) continue;
    narrowest = apart;
    asleep = boot - before - apart;
  }
  return asleep;
}

Look look() {
  const BootTime now = BootClock::now();
  return {now, asleep_so_far()};
}

void sleep_until(BootTime moment) {
  const Nanos since = moment.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const timespec until{static_cast<time_t>(seconds.count()),
                       static_cast<long>((since - seconds).count())};
  clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, nullptr);
}

void spin_until(BootTime moment) {
  while (BootClock::now() < moment) {
  }
}

}  // namespace

Measurement measure(const MeasureOptions& options, const std::stop_token& stop,
                    Progress& progress) {
  const Look start = look();
  const BootTime end = start.at + options.duration;
  Recorder recorder(start, options.tick);
  while (!stop.stop_requested()) {
    const BootTime next = std::min(recorder.due(), end);
    options.waiting == Waiting::sleep ? sleep_until(next) : spin_until(next);
    const Look now = look();
    recorder.ran(now);
    progress.measured = recorder.measured().length.count();
    progress.worst = recorder.measured().delays.max().count();
    if (now.at >= end) break;
  }
  return std::move(recorder).take();
}

}  // namespace leasehold::probe
