// The operator's view of the fences in one database file.
#pragma once

#include <memory>

#include "leasehold/fence_admin.h"
#include "leasehold/url.h"

namespace leasehold::sqlite {

// Opens the database that holds the data. It must exist: a fence in a database that was made by a
// mistyped path would guard nothing. Fails with `invalid` for a wrong URL, `unavailable` for a file
// that is missing, damaged or not a database. Calls wait up to 5 s for other writers.
[[nodiscard]] Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url);

}  // namespace leasehold::sqlite
