// What is wrong with a PostgreSQL server as a lock store, or as the resource of a fence.
#pragma once

#include "leasehold/examination.h"
#include "leasehold/url.h"

namespace leasehold::postgres {

// For Adapter::examine. `unavailable` if no server can be reached.
[[nodiscard]] Result<Diagnosis> examine(const Url& url, const ExamineOptions& options);

}  // namespace leasehold::postgres
