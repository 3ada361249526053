#include "leasehold/outbox.h"

#include "kit/try.h"

namespace leasehold {

Status check(const OutboxEntry& entry) {
  TRY(detail::check_name("outbox key", entry.key));
  TRY(detail::check_name("outbox topic", entry.topic));
  if (entry.idempotency_key) {
    TRY(detail::check_name("idempotency key", *entry.idempotency_key));
  }
  if (entry.payload.size() <= kMaxOutboxPayload) return {};
  return fail(ErrorCode::invalid, "outbox payload has " + std::to_string(entry.payload.size()) +
                                      " bytes; at most " + std::to_string(kMaxOutboxPayload) +
                                      " are allowed");
}

}  // namespace leasehold
