#include "leasehold/postgres/fenced_once.h"

#include <optional>

#include "kit/try.h"
#include "leasehold/postgres/outbox.h"
#include "once_functions.h"

namespace leasehold::postgres {

Result<std::int64_t> FencedTransaction::send(OutboxEntry entry) {
  ++sent_;
  if (!entry.idempotency_key) {
    entry.idempotency_key = leasehold::detail::message_key(key_, sent_);
  }
  return outbox_put(handle(), entry);
}

Result<FencedOnce> FencedOnce::open(pg_conn* connection, std::string_view resource) {
  auto fence = TRY(Fence::open(connection, resource));
  TRY(check_once_schema(Session(connection)));
  return FencedOnce(connection, std::move(fence));
}

// All take the fence first and the key second, so that no two wait for one another.
Result<FencedOnce::Begun> FencedOnce::begin(const Token& token, std::string_view key,
                                            std::string_view parameters,
                                            const OnceOptions& options) const {
  const Session session(connection_);
  const auto name = TRY(leasehold::detail::check_once(key, parameters));
  const KeyClaim claim(name, parameters);
  std::optional<OwnedTransaction> transaction;
  auto answer = TRY(claim_in_time(options, [&](Millis wait) -> Result<Rows> {
    auto entered = TRY(fence_.begin(token, Entry::repeatable));
    auto rows = claim.run(session, wait);
    if (rows) transaction.emplace(std::move(entered));
    return rows;
  }));
  if (!answer) return Begun(std::move(*transaction));
  TRY(transaction->commit());
  return std::move(*answer);
}

Status FencedOnce::store(std::string_view key, std::string_view, std::string_view result) const {
  return store_result(Session(connection_), key, result);
}

}  // namespace leasehold::postgres
