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
  std::uint16_t slot = 0;  // as in Record
};

// One worker at one lock, or something else that faults hit. A worker that was killed leaves its
// lane to the next one that begins.
struct Lane {
  struct Owner {
    std::int64_t from;
    std::string name;
  };
  std::string lock;  // empty for what is no worker
  std::vector<Owner> owners;
  std::vector<Held> held;
  std::vector<FaultSpan> faults;
  std::vector<Mark> marks;
};

// Whose lane it was at that time.
const std::string& owner_at(const Lane& lane, std::int64_t time);

struct Timeline {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::vector<Lane> lanes;  // by lock, then by owner
};

// The history must be sorted.
Timeline timeline_of(const History& history);

// What lies closer together than `span` is drawn as one. `quiet_only`: but not what is near a
// fault, a refusal or a stale write.
Timeline thinned(const Timeline& timeline, std::int64_t span, bool quiet_only);

}  // namespace leasehold::drill
