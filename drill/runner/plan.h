// What a drill is asked to do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

struct Plan {
  std::string store = "sqlite";  // a URL; or the name of a technology: one is started
  std::string fence;             // the same, or "none"; empty: the store's own
  std::vector<Fault> faults{Fault::pause};
  bool faults_where_possible = false;  // leaves out those that the store cannot have, and says so
  unsigned workers = 3;                // per lock
  unsigned locks = 6;
  std::optional<Millis> ttl;  // default: as short as the store allows
  Millis duration{10'000};
  std::uint64_t cycles = 0;  // ends earlier, after so many; 0: never
  std::uint64_t seed = 1;
  std::string program;  // this one, which is its own worker
};

}  // namespace leasehold::drill
