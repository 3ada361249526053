// A world in one thread: real engines, a store, a network, fenced resources and callers who read,
// change and write, in virtual time, under faults that all come from one seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faults.h"
#include "leasehold/drill/checker.h"
#include "mutation.h"

namespace leasehold::simulation {

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t steps = 100'000;  // then everybody leaves, which takes some more
  Mutation mutation = Mutation::none;
};

// Something that must not happen. `check` is a name of drill::Check, D1, L1, or of the engine:
// E1  every acquire and every release is answered exactly once
// E2  a lease that is over is never handed out
// E3  answers come in time
// E4  one call of a request at a time; a release does not overtake its acquire
// E5  in the end nothing is left: no call, no timer, no grant, no place in a queue
// E6  a lost lease stays lost
// E7  time given to the engine makes it go on
// E8  a renewal gets the time that its own lease has, whatever became of shorter ones
// E9  no renewal is sent for a lease whose renewing was stopped
struct Problem {
  std::string check;
  std::string sentence;
};

struct Outcome {
  std::uint64_t seed = 0;
  std::uint64_t steps = 0;
  std::uint64_t trace = 0;  // the same for the same seed and build
  std::uint64_t virtual_ns = 0;
  FaultCounts faults;
  // Leases with a token older than that of the grant the store keeps for the same request. Safe:
  // the fence refuses it if anybody entered between the two.
  std::uint64_t older_tokens_told = 0;
  std::uint64_t granted_beside = 0;  // another one of its lock, that lived
  drill::Report report;
  std::vector<Problem> problems;  // the checker's violations and the engine's, first ones first
  std::string tail;               // of the trace, if there are problems
};

Outcome run(const Options& options);

// Problems, the last records and the last steps, for a person.
std::string to_text(const Outcome& outcome);

}  // namespace leasehold::simulation
