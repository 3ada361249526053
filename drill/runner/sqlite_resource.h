// The number as a row of a SQLite database; behind its fence, its claims, or nothing.
#pragma once

#include "resource.h"

namespace leasehold::drill {

[[nodiscard]] Result<std::unique_ptr<Resource>> open_sqlite_resource(const ResourceChoice& choice);

}  // namespace leasehold::drill
