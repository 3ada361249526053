// What kind of world a seed makes.
#pragma once

#include <array>
#include <cstdint>

#include "chance.h"
#include "drifting_clock.h"

namespace leasehold::simulation {

// What a lock is for: exclusive requests, readers among them, or permits alone.
struct LockUse {
  int readers = 0;           // of a thousand requests
  std::int64_t permits = 0;  // how many; 0: none
};

struct Settings {
  static constexpr int kMostLocks = 4;

  bool queues = false;  // the store queues waiters, and nudges them
  int clients = 2;
  int workers = 1;  // callers in each client
  int locks = 1;
  std::array<LockUse, kMostLocks> uses = {};
  Millis shortest_ttl{100};
  Millis longest_ttl{600};
  bool short_beside_long = false;  // TTLs are near one end or near the other
  Time grid = 1;  // messages arrive at multiples of it; a coarse one makes times coincide
  std::int64_t first_token = 0;
  Time most_delay = 0;  // of a message, in a storm
  // In a storm, of a thousand messages:
  int lost = 0;
  int repeated = 0;
  int unavailable = 0;
  int timers_late = 0;
  int late_confirms = 0;  // of those that confirm a grant
  // In a storm, how often relative to each other; 0: never in this world.
  int pauses = 0;
  int crashes = 0;
  int store_crashes = 0;
  int store_pauses = 0;
  int clock_steps = 0;
  int drifts = 0;
  int cuts = 0;
  int forgeries = 0;
  int forced = 0;
  int sweeps = 0;
  // Of a thousand leases: held on and worked under whatever is told.
  int careless = 0;
  bool together = false;     // calls of a client gather while one is out
  bool tells_ended = false;  // the store tells a holder whose grant it sees end
};

Settings settings_of(std::uint64_t seed);

}  // namespace leasehold::simulation
