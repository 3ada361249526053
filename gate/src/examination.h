// What is wrong with where the state folder of a gate stands.
#pragma once

#include "leasehold/examination.h"
#include "leasehold/url.h"

namespace leasehold::gate {

// For Adapter::examine. `unavailable` if the folder is not there.
[[nodiscard]] Result<Diagnosis> examine(const Url& url, const ExamineOptions& options);

}  // namespace leasehold::gate
