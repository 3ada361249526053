// One client machine: a clock, an engine, and callers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "drifting_clock.h"
#include "engine/engine.h"
#include "resource_model.h"
#include "schedule.h"

namespace leasehold::simulation {

// A caller: takes a lock, enters the resource and reads, changes, writes, gives the lock back.
struct Worker {
  enum class State : std::uint8_t { idle, waiting, working, releasing };

  State state = State::idle;
  RequestRef request = 0;
  std::uint32_t lock = 0;
  Mode mode = {};
  std::optional<Slot> slot = {};
  Millis ttl{0};
  std::int64_t token = 0;
  bool lost = false;      // was told so
  bool careless = false;  // works on whatever it was told
  bool renewed = true;    // false: it has stopped the renewing of its lease
  bool writes = false;    // the access under way, or the next one
  int reads_left = 0;     // of one that shares the lock, and only reads
  int writes_left = 0;
  int retries_left = 0;
  std::uint32_t sequence = 0;
  std::uint64_t seen = 0;  // the value at the resource, as far as it knows
  std::uint64_t next = 0;  // the value it writes
  std::uint32_t visit = 0;
  BootTime deadline;
  bool only_reads() const { return mode == Mode::shared(); }
  bool holds() const { return state == State::working && !lost; }
  std::uint32_t generation = 0;  // of its next wake-up
};

struct Client {
  std::optional<engine::Engine> engine;  // none while it is down
  DriftingClock clock;
  drill::ProcessRef process = 0;
  std::uint32_t life = 0;
  bool paused = false;
  bool cannot_send = false;
  bool cannot_receive = false;
  std::vector<Event> deferred;  // what came while it was paused
  std::vector<Worker> workers;
  std::optional<BootTime> wake;  // for which a tick is planned
  std::uint32_t tick_generation = 0;
  std::uint64_t newest_arrival = 0;  // at the store
  // Calls that gather while one is out: its number, or 0.
  std::uint32_t out = 0;
  std::vector<std::uint32_t> gathered;

  bool up() const { return engine.has_value(); }
};

}  // namespace leasehold::simulation
