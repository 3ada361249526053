#include "leasehold/sqlite/fenced_once.h"

#include <optional>

#include "fence_table.h"
#include "kit/try.h"
#include "leasehold/sqlite/outbox.h"
#include "once_table.h"

namespace leasehold::sqlite {

Result<std::int64_t> FencedTransaction::send(OutboxEntry entry) {
  ++sent_;
  if (!entry.idempotency_key) {
    entry.idempotency_key = leasehold::detail::message_key(key_, sent_);
  }
  return outbox_put(handle(), entry);
}

Result<FencedOnce> FencedOnce::open(sqlite3* connection, std::string_view resource) {
  auto fence = TRY(Fence::open(connection, resource));
  TRY(check_once_table(Connection(connection)));
  return FencedOnce(connection, std::move(fence));
}

Result<FencedOnce::Begun> FencedOnce::begin(const Token& token, std::string_view key,
                                            std::string_view parameters,
                                            const OnceOptions& options) const {
  const Connection connection(connection_);
  const auto name = TRY(leasehold::detail::check_once(key, parameters));
  // Nothing is told to a stale holder, so that there is no look before the fence was entered.
  auto begun = begin_in_time(connection, options,
                             [] { return Result<std::optional<OnceResult>>(std::nullopt); });
  if (!begun) return begun;
  Error refused(ErrorCode::internal, {});
  {
    auto transaction = std::get<detail::OwnedTransaction>(std::move(*begun));
    auto entered = fence_.enter(token);
    if (entered) {
      auto stored = TRY(find_result(connection, name, parameters));
      if (!stored) return Begun(std::move(transaction));
      TRY(transaction.commit());
      return std::move(*stored);
    }
    refused = std::move(entered.error());
  }
  return fail(counted(connection, resource(), std::move(refused)));
}

Status FencedOnce::store(std::string_view key, std::string_view parameters,
                         std::string_view result) const {
  return store_result(Connection(connection_), key, parameters, result);
}

}  // namespace leasehold::sqlite
