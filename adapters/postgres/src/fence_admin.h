// The operator's view of the fences in one database.
#pragma once

#include <memory>

#include "leasehold/fence_admin.h"
#include "leasehold/url.h"

namespace leasehold::postgres {

// Connects to the database that holds the data: postgres://user@host:port/database with the options
// of TlsOptions. Fails with `invalid` for a wrong URL, `unavailable` if it cannot be reached. Calls
// wait up to 10 s for other transactions.
[[nodiscard]] Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url);

}  // namespace leasehold::postgres
