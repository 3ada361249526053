// What is wrong with Redis servers as lock stores, or as the resource of a fence.
#pragma once

#include "leasehold/examination.h"
#include "leasehold/url.h"

namespace leasehold::redis {

// For Adapter::examine. `unavailable` if no server can be reached.
[[nodiscard]] Result<Diagnosis> examine_redis(const Url& url, const ExamineOptions& options);
[[nodiscard]] Result<Diagnosis> examine_redlock(const Url& url, const ExamineOptions& options);

}  // namespace leasehold::redis
