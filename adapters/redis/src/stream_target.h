// Messages of an outbox into a Redis stream.
#pragma once

#include <memory>

#include "leasehold/outbox.h"
#include "leasehold/url.h"

namespace leasehold::redis {

// redis://host:6379/0?stream=NAME, and the options of a store. Each message is one XADD with the
// fields id, key, topic, idempotency_key, token and payload. Fails with `invalid`; does not
// connect.
[[nodiscard]] Result<std::unique_ptr<OutboxTarget>> open_stream(const Url& url);

}  // namespace leasehold::redis
