// What the gate remembers of one resource, in memory and on disk.
#pragma once

#include <cstdint>
#include <map>

#include "fence/mark.h"
#include "leasehold/name.h"

namespace leasehold::gate {

struct ResourceState {
  fence::Mark mark = {};
  std::int64_t refused = 0;
  bool open = false;  // a request may have been forwarded and not answered

  bool operator==(const ResourceState&) const = default;
};

using ResourceStates = std::map<ResourceName, ResourceState>;

}  // namespace leasehold::gate
