// The operator's view of the fences at one resource server or file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/name.h"
#include "leasehold/token.h"

namespace leasehold {

struct FenceMark {
  ResourceName resource;
  std::optional<Token> mark;       // nothing has entered yet: none
  std::optional<Lineage> lineage;  // the only lineage that may enter; none: the first to come
  std::int64_t refused = 0;        // stale or foreign tokens turned away
  std::optional<RequestId> claim;  // who last claimed it, in claim mode
};

// Each call blocks on the resource; not thread safe.
class FenceAdmin {
 public:
  virtual ~FenceAdmin() = default;

  // Creates what the fence needs; doing it again changes nothing.
  [[nodiscard]] virtual Status install() = 0;

  // All marks, by resource name. `unavailable` if the fence is not installed.
  [[nodiscard]] virtual Result<std::vector<FenceMark>> marks() = 0;

  // Lets `lineage` in from `at_least` on, and nobody else: deliberately, after a store was
  // replaced.
  [[nodiscard]] virtual Status adopt(const ResourceName& resource, const Lineage& lineage,
                                     TokenNumber at_least) = 0;
};

}  // namespace leasehold
