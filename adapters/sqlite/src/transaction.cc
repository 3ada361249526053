#include "leasehold/sqlite/transaction.h"

#include "database.h"
#include "guard.h"
#include "kit/try.h"

namespace leasehold::sqlite::detail {

OwnedTransaction::OwnedTransaction(sqlite3* db, std::unique_ptr<Transaction> inner)
    : db_(db), inner_(std::move(inner)) {}
OwnedTransaction::OwnedTransaction(OwnedTransaction&&) noexcept = default;
OwnedTransaction::~OwnedTransaction() = default;

Result<OwnedTransaction> OwnedTransaction::begin(sqlite3* db) {
  if (Connection(db).in_transaction()) {
    return fail(ErrorCode::invalid,
                "the connection has a transaction open already; this call begins its own");
  }
  auto inner = TRY(Transaction::begin(Connection(db)));
  // It goes with this transaction: if it is still there at the end, so is the transaction.
  TRY(Connection(db).exec("SAVEPOINT leasehold_work"));
  return OwnedTransaction(db, std::make_unique<Transaction>(std::move(inner)));
}

Status OwnedTransaction::commit() {
  const bool same_transaction =
      Connection(db_).in_transaction() && Connection(db_).exec("RELEASE leasehold_work");
  if (!same_transaction) {
    return fail(ErrorCode::invalid,
                "the transaction was over before its work returned: the work ended it, or ignored "
                "an error after which SQLite rolled it back");
  }
  TRY(leave_guards(Connection(db_)));
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
