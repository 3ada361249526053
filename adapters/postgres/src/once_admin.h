// The operator's view of the idempotency keys of the database that a URL names.
#pragma once

#include <memory>

#include "leasehold/once_admin.h"
#include "leasehold/url.h"

namespace leasehold::postgres {

// Fails as AdminConnection::open.
[[nodiscard]] Result<std::unique_ptr<OnceAdmin>> open_once_admin(const Url& url);

}  // namespace leasehold::postgres
