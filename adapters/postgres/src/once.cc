#include "leasehold/postgres/once.h"

#include <optional>
#include <utility>

#include "kit/try.h"
#include "once_functions.h"

namespace leasehold::postgres {

Status install_once(pg_conn* connection) {
  return make_once(Session(connection));
}

Status remove_once(pg_conn* connection) {
  return drop_once(Session(connection));
}

Status Driver::check_once(pg_conn* connection) {
  return postgres::check_once(Session(connection));
}

Result<Driver::OnceBegun> Driver::begin_once(pg_conn* connection, std::string_view key,
                                             std::string_view parameters,
                                             const OnceOptions& options) {
  const Session session(connection);
  const auto name = TRY(leasehold::detail::check_once(key, parameters));
  TRY(session.check_outside());
  const KeyClaim claim(name, parameters);
  std::optional<OwnedTransaction> transaction;
  auto answer = TRY(claim_in_time(options, [&](Millis wait) {
    auto rows = claim.begin(session, wait);
    if (rows) transaction.emplace(connection, TransactionId{rows->number(1)});
    return rows;
  }));
  if (answer) return std::move(*answer);
  return OnceBegun(std::move(*transaction));
}

// All take the fence first and the key second, so that no two wait for one another.
Result<Driver::OnceBegun> Driver::begin_fenced_once(pg_conn* connection,
                                                    const ResourceName& resource,
                                                    const Token& token, std::string_view key,
                                                    std::string_view parameters,
                                                    const OnceOptions& options) {
  const Session session(connection);
  const auto name = TRY(leasehold::detail::check_once(key, parameters));
  const KeyClaim claim(name, parameters);
  std::optional<OwnedTransaction> transaction;
  auto answer = TRY(claim_in_time(options, [&](Millis wait) -> Result<Rows> {
    auto entered = TRY(begin_entered(connection, resource, token, Entry::repeatable));
    auto rows = claim.run(session, wait);
    if (rows) transaction.emplace(std::move(entered));
    return rows;
  }));
  if (!answer) return OnceBegun(std::move(*transaction));
  TRY(transaction->commit());
  return std::move(*answer);
}

Status Driver::store_result(pg_conn* connection, std::string_view key, std::string_view,
                            std::string_view result) {
  return postgres::store_result(Session(connection), key, result);
}

Result<std::int64_t> Driver::forget_results(pg_conn* connection, std::chrono::seconds age) {
  const Session session(connection);
  TRY(session.check_outside());
  auto removed =
      TRY(session.run("SELECT leasehold_once.forget(pg_catalog.make_interval(secs => $1))",
                      {std::to_string(leasehold::detail::within_reason(age).count()).c_str()}));
  return removed.number(0);
}

}  // namespace leasehold::postgres
