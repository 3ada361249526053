#include "leasehold/outbox.h"

namespace leasehold {

Status check(const OutboxEntry& entry) {
  if (auto ok = detail::check_name("outbox key", entry.key); !ok) return ok;
  if (auto ok = detail::check_name("outbox topic", entry.topic); !ok) return ok;
  if (entry.idempotency_key) {
    if (auto ok = detail::check_name("idempotency key", *entry.idempotency_key); !ok) return ok;
  }
  if (entry.payload.size() <= kMaxOutboxPayload) return {};
  return fail(ErrorCode::invalid, "outbox payload has " + std::to_string(entry.payload.size()) +
                                      " bytes; at most " + std::to_string(kMaxOutboxPayload) +
                                      " are allowed");
}

}  // namespace leasehold
