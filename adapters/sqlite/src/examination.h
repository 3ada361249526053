// What is wrong with a database file as a lock store, or as the resource of a fence.
#pragma once

#include "leasehold/examination.h"
#include "leasehold/url.h"

namespace leasehold::sqlite {

// For Adapter::examine. `unavailable` if the file is not there or is no database.
[[nodiscard]] Result<Diagnosis> examine(const Url& url, const ExamineOptions& options);

}  // namespace leasehold::sqlite
