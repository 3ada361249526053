// Where a drill takes place: the store, the resource, and what can be done to their servers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chance.h"
#include "leasehold/error.h"
#include "leasehold/time.h"
#include "parts.h"
#include "plan.h"
#include "resource.h"

namespace leasehold::drill {

// Lives as long as the drill; servers that it has started go with it. Not thread safe.
struct Site {
  std::string store_url;
  std::string fence_url;
  Fencing fencing = Fencing::token;
  std::string store_name;  // for people, without secrets
  std::string fence_name;
  Millis ttl{};  // of the plan, or the shortest that makes sense here
  std::string lock_prefix;

  std::unique_ptr<Place> store;     // none if it was there before
  std::unique_ptr<Place> resource;  // if it is in a place of its own
  std::string failover_note;        // what to know if one happens

  void begin(Fault fault, Chance& chance) { store->begin(fault, ttl, chance); }
  bool end(Fault fault) { return store->end(fault); }
};

// Starts what the plan needs; `folder` is for files. Fails with `invalid` or `unsupported` for what
// the plan must not ask, and says why; `unavailable` if a store does not answer. Throws
// std::runtime_error if a server does not start.
[[nodiscard]] Result<Site> open_site(const Plan& plan, const std::string& folder);

// Why a fault cannot be had on a store of a plan; nothing if it can.
std::optional<std::string> why_impossible(const std::string& store, Fault fault);
// Takes those out of the plan, and says which and why; empty if there are none.
std::string leave_out_impossible_faults(Plan& plan);

// Names for --store and --fence, besides URLs.
std::vector<std::string> known_stores();
std::vector<std::string> known_fences();  // the first is "none"

}  // namespace leasehold::drill
