// Where a drill takes place: the store, the resource, and what can be done to their servers.
#pragma once

#include <memory>
#include <string>

#include "leasehold/error.h"
#include "leasehold/time.h"
#include "plan.h"
#include "resource.h"

namespace leasehold::drill {

// Lives as long as the drill; servers that it has started go with it. Not thread safe.
class Site {
 public:
  virtual ~Site() = default;

  virtual std::string store_url() const = 0;
  virtual std::string fence_url() const = 0;
  virtual Fencing fencing() const = 0;

  // For people, without secrets.
  virtual std::string store_name() const = 0;
  virtual std::string fence_name() const = 0;

  // The shortest TTL that makes sense here.
  virtual Millis default_ttl() const = 0;
};

// Starts what the plan needs; `folder` is for files. Fails with `invalid` or `unsupported` for what
// the plan must not ask, and says why; `unavailable` if a server does not start.
[[nodiscard]] Result<std::unique_ptr<Site>> open_site(const Plan& plan, const std::string& folder);

}  // namespace leasehold::drill
