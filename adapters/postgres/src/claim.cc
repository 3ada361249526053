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

Status Driver::claim(pg_conn* connection, const ResourceName& resource, const RequestId& request) {
  const Session session(connection);
  TRY(session.check_outside());
  const std::string hex = request.hex();
  TRY(session.run("SELECT leasehold_fence.claim($1, $2)", {resource.str().c_str(), hex.c_str()}));
  return {};
}

Status Driver::confirm(pg_conn* connection, const ResourceName& resource,
                       const RequestId& request) {
  const Session session(connection);
  TRY(session.check_inside());
  const std::string hex = request.hex();
  TRY(session.run(kConfirm.sql, {resource.str().c_str(), hex.c_str()}));
  return {};
}

Result<OwnedTransaction> Driver::begin_confirmed(pg_conn* connection, const ResourceName& resource,
                                                 const RequestId& request) {
  const Session session(connection);
  TRY(session.check_outside());
  const std::string hex = request.hex();
  return entered(connection, resource,
                 session.begin_with(kConfirm, {resource.str().c_str(), hex.c_str()}));
}

}  // namespace leasehold::postgres
