// Two ways to do the same, measured in turns in one run: what the machine does besides hits both.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace leasehold::bench {

// One way. `worker(i)` is called on the i-th of several threads, and returns what that thread does
// again and again: an acquire and a release, say. Every worker may have a connection of its own.
struct Side {
  std::string name;
  std::function<std::function<void()>(int worker)> worker;
};

struct Effort {
  int in_flight = 1;  // threads, each doing one thing at a time
  int turns = 5;      // of each side
  std::chrono::milliseconds turn = std::chrono::milliseconds(600);
};

// Runs both sides in turns, and reports what each did per second and the ratio, ours by theirs: the
// median of the turns.
void compare(const std::string& what, const Side& ours, const Side& theirs, const Effort& effort,
             double at_least);

// "--quick" among the arguments: fewer and shorter turns.
Effort effort_of(int argc, char** argv, int in_flight);

}  // namespace leasehold::bench
