// What went wrong in a simulated world, counted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leasehold::simulation {

enum class Fault : std::uint8_t {
  request_lost,
  reply_lost,
  connection_broken,  // with one of these: the caller sees it at once
  duplicate,
  reordered,
  delayed,        // by more than a second
  executed_late,  // after its caller had been told "unknown", or had gone
  unavailable,    // the store could not be reached, and the caller knows it
  disconnected,   // a client cut from the store, both ways or one way
  nudge_lost,
  timer_late,
  client_paused,
  paused_holder,  // of these: with a lease that ended meanwhile
  client_crashed,
  store_crashed,
  crashed_after_commit,  // of these: between the commit and its reply
  killed_in_sync,        // of these: of numbers that it reserves, which who comes next can see
  power_cut,             // of these: what was not synced is gone
  store_paused,
  wall_clock_set,
  drift_changed,
  cancelled,         // a caller stopped waiting
  forged,            // the fence was offered a token that was never granted so
  forced_release,    // an operator took a lock away
  lost_short_lease,  // beside one of the same client that lasts much longer
  late_confirm,      // a grant is confirmed at about the time when its caller gives up
  renewing_stopped,  // a holder keeps its lease and lets it run out
  renewing_resumed,  // of these: and thinks better of it
  gone_together,     // several calls of a client went to the store at once
  left_the_line,     // a caller gave up before its call, which had gathered, was sent
  swept,             // the fence forgets the marks of what nobody has entered for long
};
inline constexpr std::size_t kFaults = static_cast<std::size_t>(Fault::swept) + 1;

inline std::string_view to_string(Fault fault) {
  constexpr std::string_view names[kFaults] = {"request lost",
                                               "reply lost",
                                               "connection broken",
                                               "duplicate",
                                               "reordered",
                                               "delayed",
                                               "executed late",
                                               "unavailable",
                                               "disconnected",
                                               "nudge lost",
                                               "timer late",
                                               "client paused",
                                               "paused holder",
                                               "client crashed",
                                               "store crashed",
                                               "crashed after commit",
                                               "killed in sync",
                                               "power cut",
                                               "store paused",
                                               "wall clock set",
                                               "drift changed",
                                               "cancelled",
                                               "forged",
                                               "forced release",
                                               "lost short lease",
                                               "late confirm",
                                               "renewing stopped",
                                               "renewing resumed",
                                               "gone together",
                                               "left the line",
                                               "swept"};
  return names[static_cast<std::size_t>(fault)];
}

class FaultCounts {
 public:
  void add(Fault fault) { ++counts_[static_cast<std::size_t>(fault)]; }
  std::uint64_t operator[](Fault fault) const { return counts_[static_cast<std::size_t>(fault)]; }
  FaultCounts& operator+=(const FaultCounts& other) {
    for (std::size_t i = 0; i < kFaults; ++i) counts_[i] += other.counts_[i];
    return *this;
  }

 private:
  std::array<std::uint64_t, kFaults> counts_{};
};

}  // namespace leasehold::simulation
