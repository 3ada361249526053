// One worker of a drill: a process that takes a lock again and again, and reads and replaces the
// number that it guards. In a drill of elections it is a candidate, and works while it leads; in
// one of partitions a member of a group, and works on each partition that it owns.
//
// It writes down what it does (history_file.h). On stdout it says "entered GRANTED TTL TOKEN PIECE"
// (nanoseconds on the boot clock, milliseconds; 0 without a token; the number of the slot or
// partition, if it has one) when it has entered the fence and read, and waits for a line on stdin
// before it writes; then it says "wrote", "refused" or "unknown". It says "late" if it was refused
// when it wanted to enter. A worker that is frozen where it waits is frozen between its read and
// its write.
//
// One that shares the lock only looks at the number, past the fence, and says "read GRANTED"; where
// a claim stands in for the token it does not even look, as that would be a claim of its own. One
// that has a permit works on the number of its slot, NAME#slot, and one that owns a partition on
// that of NAME/partition.
#pragma once

#include <cstdint>
#include <string>

#include "leasehold/error.h"
#include "leasehold/time.h"
#include "plan.h"
#include "resource.h"

namespace leasehold::drill {

// How the drill hands the URLs to the worker: they may contain passwords.
inline constexpr const char* kStoreVariable = "LEASEHOLD_STORE";
inline constexpr const char* kResourceVariable = "LEASEHOLD_DRILL_RESOURCE";

struct WorkerPlan {
  std::string store;  // URL, as all below
  std::string lock;   // or the group
  Use use = Use::exclusive;
  Mode mode = {};           // of the lock
  int partitions = 0;       // of the group
  ResourceChoice resource;  // its name is that of the lock, and follows from it
  std::string name;         // in the history
  std::string history;      // file
  Millis ttl{};
  std::uint64_t first_value = 0;  // its values are this + 1, + 2, ...
};

// Until stdin ends. Fails as the history does; a store or resource that does not answer is tried
// again.
[[nodiscard]] Status run_worker(const WorkerPlan& plan);

}  // namespace leasehold::drill
