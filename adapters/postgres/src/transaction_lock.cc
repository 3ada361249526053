#include "leasehold/postgres/transaction_lock.h"

#include <libpq-fe.h>

#include <array>

#include "connection.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "schema.h"
#include "session.h"

namespace leasehold::postgres {
namespace {

Error not_taken(const PGresult* result, const LockName& lock, const std::string& schema) {
  const char* field = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const std::string_view state = field == nullptr ? "" : field;
  const bool wrong_isolation = state == "25000";
  // invalid_schema_name, undefined_function
  const bool missing = state == "3F000" || state == "42883";
  return Error(wrong_isolation ? ErrorCode::invalid : ErrorCode::unavailable,
               "lock " + kit::in_quotes(lock.str()) + " was not taken" +
                   (missing ? ": the schema '" + schema +
                                  "' is not in this database, or not whole; the first use of a "
                                  "postgres:// store makes it"
                            : ""),
               words_of(result));
}

}  // namespace

Status lock_in_transaction(pg_conn* connection, const LockName& lock,
                           const TransactionLockOptions& options) {
  // In another encoding the name would be that of another lock.
  TRY(Session(connection).check());
  if (PQtransactionStatus(connection) != PQTRANS_INTRANS) {
    return fail(ErrorCode::invalid, "lock_in_transaction needs an open transaction: BEGIN first");
  }
  if (!is_schema_name(options.schema)) {
    return fail(ErrorCode::invalid, "'" + options.schema + "' is not the name of a schema");
  }
  if (options.wait < Millis(0)) return fail(ErrorCode::invalid, "wait is negative");
  if (options.idle_timeout < Millis(1))
    return fail(ErrorCode::invalid, "idle_timeout is not positive");
  const std::string wait = as_setting(options.wait);
  const std::string idle = as_setting(options.idle_timeout);
  const std::array<const char*, 3> values = {lock.str().c_str(), wait.c_str(), idle.c_str()};
  const std::string sql = in_schema("SELECT @S.transaction_lock($1, $2, $3)", options.schema);
  PGresult* result =
      PQexecParams(connection, sql.c_str(), 3, nullptr, values.data(), nullptr, nullptr, 0);
  const Rows rows(result);
  if (PQresultStatus(result) != PGRES_TUPLES_OK) {
    return fail(not_taken(result, lock, options.schema));
  }
  if (rows.is_null(0)) return {};
  const std::string who = rows.text(0).empty() ? "" : " by " + std::string(rows.text(0));
  if (options.wait == Millis(0)) {
    return fail(ErrorCode::busy, "lock " + kit::in_quotes(lock.str()) + " is held" + who);
  }
  return fail(ErrorCode::timeout, "lock " + kit::in_quotes(lock.str()) +
                                      " could not be had within " + wait + " ms; it is held" + who);
}

}  // namespace leasehold::postgres
