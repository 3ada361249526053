// The transaction in which a work runs on a connection of yours: see leasehold/sql/transaction.h.
#pragma once

#include <memory>

#include "leasehold/error.h"
#include "leasehold/sql/transaction.h"

struct sqlite3;

namespace leasehold::sqlite {

class Transaction;

using OpenTransaction = sql::OpenTransaction<sqlite3>;

namespace detail {

// BEGIN IMMEDIATE … COMMIT; rolls back unless committed. Not thread safe.
class [[nodiscard]] OwnedTransaction {
 public:
  // `invalid` if a transaction is open already, `unavailable` if the write lock cannot be taken.
  [[nodiscard]] static Result<OwnedTransaction> begin(sqlite3* db);
  // For work that only reads: takes no lock at first. Its commit is `invalid` if anything was
  // written, in whatever database of the connection; then it is rolled back.
  [[nodiscard]] static Result<OwnedTransaction> begin_reading(sqlite3* db);
  OwnedTransaction(OwnedTransaction&&) noexcept;
  OwnedTransaction& operator=(OwnedTransaction&&) = delete;
  ~OwnedTransaction();

  sqlite3* handle() const { return db_; }
  // `invalid` if the transaction is over already or a deferred constraint is broken, `unavailable`
  // if it was not written, `outcome_unknown` if the disk failed while it was.
  [[nodiscard]] Status commit();

 private:
  enum class Kind { writes, reads };
  static Result<OwnedTransaction> begin(sqlite3* db, Kind kind);
  OwnedTransaction(sqlite3* db, Kind kind, std::unique_ptr<Transaction> inner);
  Status check_nothing_written() const;

  sqlite3* db_;
  Kind kind_;
  std::unique_ptr<Transaction> inner_;
};

}  // namespace detail
}  // namespace leasehold::sqlite
