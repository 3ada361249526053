// What is wrong with where a fenced file or folder stands.
#pragma once

#include "leasehold/examination.h"
#include "leasehold/url.h"

namespace leasehold::files {

// For Adapter::examine. `unavailable` if the folder is not there.
[[nodiscard]] Result<Diagnosis> examine(const Url& url, const ExamineOptions& options);

}  // namespace leasehold::files
