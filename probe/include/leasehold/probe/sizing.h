// What measured pauses mean for a lease: how often one is too long, and which TTL would do.
#pragma once

#include <cstdint>
#include <optional>

#include "leasehold/probe/recorder.h"
#include "leasehold/time.h"

namespace leasehold::probe {

// What is left of a lease when a pause begins. Its renewals take no time here and do not fail.
struct Left {
  Nanos least;  // just before a renewal
  Nanos most;   // just after it
};
Left left_of(Millis ttl);

// How likely a pause of this length is longer than what is left, if it begins at a random moment.
double outlives(Nanos pause, const Left& left);

// The operations that are done under the lease.
struct Workload {
  Millis ttl{0};
  double per_second = 0;
  Nanos in_flight{0};  // one operation, from its look at the lease to its effect

  double at_once() const;  // how many are in flight at a random moment, on average
};

// A violation is an operation that was in flight when a pause began, and went on after its lease
// had ended.
struct Violations {
  std::uint64_t pauses = 0;           // seen that were longer than Left::least
  double per_day = 0;                 // as often as it was seen
  double per_day_most = 0;            // with 95 percent confidence not more; never zero
  double days_for_less_than_one = 0;  // so long without seeing one, and per_day_most is 1
};
Violations violations(const Measurement& measured, const Workload& work);

// With 95 percent confidence the mean of a Poisson variable is not above this if `seen` was drawn.
// For none seen: 3.0, the rule of three.
double upper_bound(std::uint64_t seen);

// The shortest TTL with which a lease is renewed in time although its first `missed` renewals fail
// and each of them, and the one that succeeds, comes `pause` too late. Nothing if no allowed TTL
// does.
std::optional<Millis> surviving_ttl(Nanos pause, int missed = 3);

}  // namespace leasehold::probe
