// Writes down what happens: the history for the checker, and a trace that tells two runs apart.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "leasehold/drill/history.h"
#include "schedule.h"

namespace leasehold::simulation {

class Recorder {
 public:
  void step(const Event& event) {
    ++steps_;
    mix(static_cast<std::uint64_t>(event.time));
    mix((std::uint64_t{event.what} << 32) | (std::uint64_t{event.detail} << 8) |
        static_cast<std::uint64_t>(event.kind));
    mix(event.client);
    last_[steps_ % last_.size()] = event;
  }

  void record(const drill::Record& record);

  std::uint64_t steps() const { return steps_; }
  std::uint64_t hash() const { return hash_; }
  drill::History& history() { return history_; }

  // The last steps, one a line, oldest first.
  std::string tail() const;

 private:
  void mix(std::uint64_t word) {
    hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15;
    hash_ ^= hash_ >> 29;
  }

  drill::History history_;
  std::uint64_t steps_ = 0;
  std::uint64_t hash_ = 0;
  std::array<Event, 64> last_{};
};

}  // namespace leasehold::simulation
