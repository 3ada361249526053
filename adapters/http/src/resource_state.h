// What the gate remembers of one resource, in memory and on disk.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "leasehold/name.h"
#include "leasehold/token.h"

namespace leasehold::http {

struct ResourceState {
  std::optional<Lineage> lineage;  // the only one that may enter; none: the first to come
  std::optional<Token> mark;       // the highest that entered
  std::int64_t least = 0;          // without a mark: the lowest number that may enter
  std::int64_t sequence = 0;       // the highest of the mark's own requests; 0: they carry none
  std::int64_t refused = 0;
  bool open = false;  // a request may have been forwarded and not answered

  std::int64_t threshold() const { return mark ? mark->number.value() : least; }
  bool operator==(const ResourceState&) const = default;
};

using ResourceStates = std::map<ResourceName, ResourceState>;

}  // namespace leasehold::http
