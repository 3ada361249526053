// The number as a text of an HTTP service behind the gate.
#pragma once

#include "resource.h"

namespace leasehold::drill {

[[nodiscard]] Result<std::unique_ptr<Resource>> open_http_resource(const ResourceChoice& choice);

}  // namespace leasehold::drill
