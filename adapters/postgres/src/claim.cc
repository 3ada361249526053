#include "leasehold/postgres/claim.h"

#include <string>

#include "fence_functions.h"
#include "kit/try.h"

namespace leasehold::postgres {
namespace {

constexpr NamedStatement kConfirm = {
    "leasehold_fence_confirm_1",
    "SELECT leasehold_fence.confirm($1, $2), " LEASEHOLD_TRANSACTION_ID};

}  // namespace

Result<Claim> Claim::take(pg_conn* connection, std::string_view resource,
                          const RequestId& request) {
  auto name = TRY(ResourceName::parse(resource));
  const Session session(connection);
  TRY(session.check_outside());
  const std::string hex = request.hex();
  TRY(session.run("SELECT leasehold_fence.claim($1, $2)", {name.str().c_str(), hex.c_str()}));
  return Claim(connection, std::move(name), request);
}

Status Claim::confirm() const {
  const Session session(connection_);
  TRY(session.check_inside());
  const std::string hex = request_.hex();
  TRY(session.run(kConfirm.sql, {resource_.str().c_str(), hex.c_str()}));
  return {};
}

Result<OwnedTransaction> Claim::begin() const {
  const Session session(connection_);
  TRY(session.check_outside());
  const std::string hex = request_.hex();
  auto confirmed = session.begin_with(kConfirm, {resource_.str().c_str(), hex.c_str()});
  if (!confirmed) return fail(counted(session, resource_, std::move(confirmed.error())));
  return OwnedTransaction(connection_, TransactionId{confirmed->number(1)});
}

}  // namespace leasehold::postgres
