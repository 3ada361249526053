#include "leasehold/sqlite/claim.h"

#include "database.h"
#include "fence_table.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"

namespace leasehold::sqlite {
namespace {

Status insert_into(const char* sql, Connection connection, const ResourceName& resource,
                   const RequestId& request) {
  const Snapshot before = snapshot_of(connection);
  const std::string hex = request.hex();
  auto insert = connection.prepare(sql);
  auto ok = insert ? insert->bind(1, resource.str()).bind(2, hex).run()
                   : Status(fail(std::move(insert.error())));
  if (ok) return {};
  return fail(entry_error(connection, std::move(ok.error()), before));
}

}  // namespace

Status Driver::claim(sqlite3* db, const ResourceName& resource, const RequestId& request) {
  auto transaction = TRY(Transaction::begin(db));
  TRY(insert_into("INSERT INTO main.leasehold_claim(resource, request) VALUES(?1, ?2)",
                  Connection(db), resource, request));
  return transaction.commit();
}

Status Driver::confirm(sqlite3* db, const ResourceName& resource, const RequestId& request) {
  const Connection connection(db);
  if (!connection.in_transaction()) {
    return fail(ErrorCode::invalid,
                "no transaction is open: confirming and writing must be one transaction");
  }
  auto ok = insert_into("INSERT INTO main.leasehold_confirm(resource, request) VALUES(?1, ?2)",
                        connection, resource, request);
  if (!ok && ok.error().code == ErrorCode::fenced_out) {
    ok.error().message = "resource " + kit::in_quotes(resource.str()) + " refused request " +
                         request.hex() + ": another request has claimed it since";
  }
  return ok;
}

Result<Driver::Transaction> Driver::begin_confirmed(sqlite3* db, const ResourceName& resource,
                                                    const RequestId& request) {
  return begin_inside(Connection(db), resource, [&] { return confirm(db, resource, request); });
}

}  // namespace leasehold::sqlite
