// The serial queues of the database that a URL names.
#pragma once

#include <memory>

#include "leasehold/serial_work.h"
#include "leasehold/url.h"

namespace leasehold::postgres {

[[nodiscard]] Result<std::unique_ptr<SerialWork>> open_serial_work(const Url& url);

}  // namespace leasehold::postgres
