// A history as a picture: lanes of spans and marks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leasehold/drill/history.h"

namespace leasehold::drill {

// All times are nanoseconds on the history's clock.
struct Held {
  std::int64_t from;
  std::int64_t until;  // when the lease ended, at the latest `to`; after that it was only believed
  std::int64_t to;
  std::int64_t first_token;
  std::int64_t last_token;
  std::uint64_t count = 1;  // several that are drawn as one
};

struct FaultSpan {
  std::int64_t from;
  std::int64_t to;
  Operation what;
  std::uint64_t count = 1;
};

enum class Sign : std::uint8_t { accepted, refused, stale, kill };

struct Mark {
  std::int64_t time;
  std::int64_t token;
  Sign sign;
  std::uint64_t count = 1;
};

// One worker at one lock, or something else that faults hit.
struct Lane {
  std::string lock;  // empty for the latter
  std::string process;
  std::vector<Held> held;
  std::vector<FaultSpan> faults;
  std::vector<Mark> marks;
};

struct Timeline {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::vector<Lane> lanes;  // by lock, then by process
};

// The history must be sorted.
Timeline timeline_of(const History& history);

// What lies closer together than `span` is drawn as one. `quiet_only`: but not what is near a
// fault, a refusal or a stale write.
Timeline thinned(const Timeline& timeline, std::int64_t span, bool quiet_only);

}  // namespace leasehold::drill
