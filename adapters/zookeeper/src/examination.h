// What is wrong with a ZooKeeper ensemble as a lock store, or as the resource of a fence.
#pragma once

#include "leasehold/examination.h"
#include "leasehold/url.h"

namespace leasehold::zookeeper {

// For Adapter::examine. `unavailable` if no session can be had.
[[nodiscard]] Result<Diagnosis> examine(const Url& url, const ExamineOptions& options);

}  // namespace leasehold::zookeeper
