// What is wrong with an etcd cluster as a lock store, or as the resource of a fence.
#pragma once

#include "leasehold/examination.h"
#include "leasehold/url.h"

namespace leasehold::etcd {

// For Adapter::examine. `unavailable` if no member of the URL can be reached.
[[nodiscard]] Result<Diagnosis> examine(const Url& url, const ExamineOptions& options);

}  // namespace leasehold::etcd
