#include "leasehold/postgres/fenced_once.h"

#include <optional>

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
  auto fence = Fence::open(connection, resource);
  if (!fence) return fail(std::move(fence.error()));
  if (auto ok = check_once_schema(Session(connection)); !ok) return fail(std::move(ok.error()));
  return FencedOnce(connection, std::move(*fence));
}

// All take the fence first and the key second, so that no two wait for one another.
Result<FencedOnce::Begun> FencedOnce::begin(const Token& token, std::string_view key,
                                            std::string_view parameters,
                                            const OnceOptions& options) const {
  const Session session(connection_);
  const auto name = leasehold::detail::check_once(key, parameters);
  if (!name) return fail(name.error());
  const KeyClaim claim(*name, parameters);
  std::optional<OwnedTransaction> transaction;
  auto answer = claim_in_time(options, [&](Millis wait) -> Result<Rows> {
    auto entered = fence_.begin(token, Entry::repeatable);
    if (!entered) return fail(std::move(entered.error()));
    auto rows = claim.run(session, wait);
    if (rows) transaction.emplace(std::move(*entered));
    return rows;
  });
  if (!answer) return fail(std::move(answer.error()));
  if (!*answer) return Begun(std::move(*transaction));
  if (auto ok = transaction->commit(); !ok) return fail(std::move(ok.error()));
  return std::move(**answer);
}

Status FencedOnce::store(std::string_view key, std::string_view, std::string_view result) const {
  return store_result(Session(connection_), key, result);
}

}  // namespace leasehold::postgres
