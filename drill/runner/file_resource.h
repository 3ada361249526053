// The number as the content of a file; behind its fence.
#pragma once

#include "resource.h"

namespace leasehold::drill {

[[nodiscard]] Result<std::unique_ptr<Resource>> open_file_resource(const ResourceChoice& choice);

}  // namespace leasehold::drill
