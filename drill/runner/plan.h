// What a drill is asked to do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/mode.h"
#include "leasehold/time.h"

namespace leasehold::drill {

enum class Fault : std::uint8_t {
  pause,           // the holder is stopped past its lease
  kill_holder,     // SIGKILL between its read and its write
  kill_server,     // SIGKILL to the store's server, which is started again
  restart_server,  // the same, in good order
  cut,             // connections are reset
  delay,           // every message is late for a while
  lose_reply,      // a request is done, and its reply never comes
  clock,           // the server's wall clock is moved by an hour
  failover,        // the leader dies, and another takes over
};
std::string_view to_string(Fault fault);
bool is_of_holder(Fault fault);  // else of a server or its network
std::optional<Fault> parse_fault(std::string_view name);
const std::vector<Fault>& all_faults();

// How the workers want their lock.
enum class Use : std::uint8_t {
  exclusive,   // each alone
  shared,      // some write, each alone, and the others read beside each other
  permits,     // each has one of so many, and what its slot guards
  election,    // each stands for the lead (leasehold/election.h)
  partitions,  // each is a member of the group of that name (leasehold/partitions.h)
};
std::string_view to_string(Use use);
inline constexpr unsigned kLeastToShare = 3;  // workers, with shared locks and permits

struct Plan {
  std::string store = "sqlite";  // a URL; or the name of a technology: one is started
  std::string fence;             // the same, or "none"; empty: the store's own
  std::vector<Fault> faults{Fault::pause};
  bool faults_where_possible = false;  // leaves out those that the store cannot have, and says so
  Use use = Use::exclusive;
  unsigned workers = 3;  // per lock
  unsigned locks = 6;
  std::optional<Millis> ttl;  // default: as short as the store allows
  Millis duration{10'000};
  std::uint64_t cycles = 0;  // ends earlier, after so many; 0: never
  std::uint64_t seed = 1;
  std::string program;  // this one, which is its own worker
};

// In which mode a worker of a lock takes it, by its number from 0 on.
Mode mode_of_worker(const Plan& plan, unsigned number);
// Of the workers of a lock.
unsigned readers_of(const Plan& plan);
// Of a lock: permits, one less than there are workers; of a group: partitions, twice as many. Of
// others none.
unsigned permits_of(const Plan& plan);
unsigned partitions_of(const Plan& plan);

// Which of the resources of a lock: the number of a slot or partition; nothing if there is one.
using Piece = std::optional<std::int64_t>;
// "NAME", "NAME#slot", or "NAME/partition".
std::string resource_name(Use use, const std::string& lock, Piece piece);
std::string resource_name(const std::string& lock, std::optional<Slot> slot);
// All that a lock guards.
std::vector<std::string> resource_names(const Plan& plan, const std::string& lock);

}  // namespace leasehold::drill
