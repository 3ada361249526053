// The outbox of the database that a URL names.
#pragma once

#include <memory>

#include "leasehold/outbox.h"
#include "leasehold/url.h"

namespace leasehold::postgres {

// Fails as AdminConnection::open.
[[nodiscard]] Result<std::unique_ptr<Outbox>> open_outbox(const Url& url);

}  // namespace leasehold::postgres
