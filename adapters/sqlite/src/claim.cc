#include "leasehold/sqlite/claim.h"

#include "database.h"
#include "fence_table.h"
#include "kit/try.h"

namespace leasehold::sqlite {
namespace {

Status insert_into(const char* sql, Connection connection, const ResourceName& resource,
                   const RequestId& request) {
  const bool had_read = has_snapshot(connection);
  const std::string hex = request.hex();
  auto insert = connection.prepare(sql);
  auto ok = insert ? insert->bind(1, resource.str()).bind(2, hex).run()
                   : Status(fail(std::move(insert.error())));
  if (ok) return {};
  return fail(entry_error(connection, std::move(ok.error()), had_read));
}

}  // namespace

Result<Claim> Claim::take(sqlite3* db, std::string_view resource, const RequestId& request) {
  auto name = TRY(ResourceName::parse(resource));
  auto transaction = TRY(detail::OwnedTransaction::begin(db));
  auto ok = insert_into("INSERT INTO main.leasehold_claim(resource, request) VALUES(?1, ?2)",
                        Connection(db), name, request);
  if (ok) ok = transaction.commit();
  if (!ok) return fail(std::move(ok.error()));
  return Claim(db, std::move(name), request);
}

Status Claim::confirm() const {
  const Connection connection(db_);
  if (!connection.in_transaction()) {
    return fail(ErrorCode::invalid,
                "no transaction is open: confirming and writing must be one transaction");
  }
  auto ok = insert_into("INSERT INTO main.leasehold_confirm(resource, request) VALUES(?1, ?2)",
                        connection, resource_, request_);
  if (!ok && ok.error().code == ErrorCode::fenced_out) {
    ok.error().message = "resource '" + resource_.str() + "' refused request " + request_.hex() +
                         ": another request has claimed it since";
  }
  return ok;
}

Result<detail::OwnedTransaction> Claim::begin() const {
  Error refused(ErrorCode::internal, {});
  {
    auto transaction = detail::OwnedTransaction::begin(db_);
    if (!transaction) return transaction;
    auto confirmed = confirm();
    if (confirmed) return transaction;
    refused = std::move(confirmed.error());
  }
  return fail(counted(Connection(db_), resource_, std::move(refused)));
}

}  // namespace leasehold::sqlite
