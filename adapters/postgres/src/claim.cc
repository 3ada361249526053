#include "leasehold/postgres/claim.h"

#include <string>

#include "fence_functions.h"

namespace leasehold::postgres {
namespace {

constexpr NamedStatement kConfirm = {
    "leasehold_fence_confirm_1",
    "SELECT leasehold_fence.confirm($1, $2), " LEASEHOLD_TRANSACTION_ID};

}  // namespace

Result<Claim> Claim::take(pg_conn* connection, std::string_view resource,
                          const RequestId& request) {
  auto name = ResourceName::parse(resource);
  if (!name) return fail(std::move(name.error()));
  const Session session(connection);
  if (auto ok = session.check_outside(); !ok) return fail(std::move(ok.error()));
  const std::string hex = request.hex();
  auto taken =
      session.run("SELECT leasehold_fence.claim($1, $2)", {name->str().c_str(), hex.c_str()});
  if (!taken) return fail(std::move(taken.error()));
  return Claim(connection, std::move(*name), request);
}

Status Claim::confirm() const {
  const Session session(connection_);
  if (auto ok = session.check_inside(); !ok) return ok;
  const std::string hex = request_.hex();
  auto rows = session.run(kConfirm.sql, {resource_.str().c_str(), hex.c_str()});
  if (!rows) return fail(std::move(rows.error()));
  return {};
}

Result<OwnedTransaction> Claim::begin() const {
  const Session session(connection_);
  if (auto ok = session.check_outside(); !ok) return fail(std::move(ok.error()));
  const std::string hex = request_.hex();
  auto confirmed = session.begin_with(kConfirm, {resource_.str().c_str(), hex.c_str()});
  if (!confirmed) return fail(counted(session, resource_, std::move(confirmed.error())));
  return OwnedTransaction(connection_, TransactionId{confirmed->number(1)});
}

}  // namespace leasehold::postgres
