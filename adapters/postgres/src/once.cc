#include "leasehold/postgres/once.h"

#include <optional>
#include <utility>

#include "kit/try.h"
#include "once_functions.h"

namespace leasehold::postgres {

Status install_once(pg_conn* connection) {
  return install_once_schema(Session(connection));
}

Status remove_once(pg_conn* connection) {
  return remove_once_schema(Session(connection));
}

Result<Once> Once::open(pg_conn* connection) {
  TRY(check_once_schema(Session(connection)));
  return Once(connection);
}

Result<Once::Begun> Once::begin(std::string_view key, std::string_view parameters,
                                const OnceOptions& options) const {
  const Session session(connection_);
  const auto name = TRY(leasehold::detail::check_once(key, parameters));
  TRY(session.check_outside());
  const KeyClaim claim(name, parameters);
  std::optional<OwnedTransaction> transaction;
  auto answer = TRY(claim_in_time(options, [&](Millis wait) {
    auto rows = claim.begin(session, wait);
    if (rows) transaction.emplace(connection_, TransactionId{rows->number(1)});
    return rows;
  }));
  if (answer) return std::move(*answer);
  return Begun(std::move(*transaction));
}

Status Once::store(std::string_view key, std::string_view result) const {
  return store_result(Session(connection_), key, result);
}

Result<std::int64_t> Once::forget_older_than(std::chrono::seconds age) const {
  const Session session(connection_);
  TRY(session.check_outside());
  auto removed =
      TRY(session.run("SELECT leasehold_once.forget(pg_catalog.make_interval(secs => $1))",
                      {std::to_string(leasehold::detail::within_reason(age).count()).c_str()}));
  return removed.number(0);
}

}  // namespace leasehold::postgres
