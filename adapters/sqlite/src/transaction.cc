#include "leasehold/sqlite/transaction.h"

#include "database.h"
#include "guard.h"
#include "kit/try.h"

namespace leasehold::sqlite::detail {

OwnedTransaction::OwnedTransaction(sqlite3* db, Kind kind, std::unique_ptr<Transaction> inner)
    : db_(db), kind_(kind), inner_(std::move(inner)) {}
OwnedTransaction::OwnedTransaction(OwnedTransaction&&) noexcept = default;
OwnedTransaction::~OwnedTransaction() = default;

Result<OwnedTransaction> OwnedTransaction::begin(sqlite3* db) {
  return begin(db, Kind::writes);
}

Result<OwnedTransaction> OwnedTransaction::begin_reading(sqlite3* db) {
  return begin(db, Kind::reads);
}

Result<OwnedTransaction> OwnedTransaction::begin(sqlite3* db, Kind kind) {
  const Connection connection(db);
  if (connection.in_transaction()) {
    return fail(ErrorCode::invalid,
                "the connection has a transaction open already; this call begins its own");
  }
  auto inner = TRY(kind == Kind::writes ? Transaction::begin(connection)
                                        : Transaction::begin_reading(connection));
  // It goes with this transaction: if it is still there at the end, so is the transaction.
  TRY(connection.exec("SAVEPOINT leasehold_work"));
  return OwnedTransaction(db, kind, std::make_unique<Transaction>(std::move(inner)));
}

// PRAGMA query_only would refuse each write, but a work that ignores that would count as done.
Status OwnedTransaction::check_nothing_written() const {
  if (sqlite3_txn_state(db_, nullptr) != SQLITE_TXN_WRITE) return {};
  return fail(ErrorCode::invalid,
              "the work wrote in a transaction that was begun to read, so it was rolled back");
}

Status OwnedTransaction::commit() {
  const bool same_transaction =
      Connection(db_).in_transaction() && Connection(db_).exec("RELEASE leasehold_work");
  if (!same_transaction) {
    return fail(ErrorCode::invalid,
                "the transaction was over before its work returned: the work ended it, or ignored "
                "an error after which SQLite rolled it back");
  }
  if (kind_ == Kind::reads) {
    TRY(check_nothing_written());
  } else {
    TRY(leave_guards(Connection(db_)));
  }
  auto ok = inner_->commit();
  if (ok) return {};
  Error error = std::move(ok.error());
  if ((sqlite3_extended_errcode(db_) & 0xff) == SQLITE_CONSTRAINT) {
    error.code = ErrorCode::invalid;
    error.message = "the work broke a deferred constraint, so it was rolled back";
  }
  return fail(std::move(error));
}

}  // namespace leasehold::sqlite::detail
