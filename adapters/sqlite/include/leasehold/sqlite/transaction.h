// The transaction in which a work runs on the user's own connection. Used by Fence, Claim and Once.
#pragma once

#include <memory>
#include <utility>

#include "leasehold/error.h"
#include "leasehold/sql/transaction_work.h"

struct sqlite3;

namespace leasehold::sqlite {

class Transaction;

// What a work receives. Everything the work does on handle() is committed together, or not at all.
// The work must not end the transaction: no COMMIT, no ROLLBACK (savepoints are fine). If the
// transaction is over when the work returns, by the work or because SQLite rolled it back after an
// error that the work ignored, the caller is told `invalid`, and what the work wrote after that
// point was neither fenced nor undone.
class OpenTransaction {
 public:
  explicit OpenTransaction(sqlite3* db) : db_(db) {}
  OpenTransaction(const OpenTransaction&) = delete;
  OpenTransaction& operator=(const OpenTransaction&) = delete;

  // The connection that was given to Fence, Claim or Once.
  sqlite3* handle() const { return db_; }

 private:
  sqlite3* db_;
};

namespace detail {

// A work takes an OpenTransaction& and returns Status or Result<T>.
template <class Work>
concept TransactionWork = sql::TransactionWork<Work, OpenTransaction>;

// BEGIN IMMEDIATE … COMMIT; rolls back unless committed. Not thread safe.
class [[nodiscard]] OwnedTransaction {
 public:
  // `invalid` if a transaction is open already, `unavailable` if the write lock cannot be taken.
  [[nodiscard]] static Result<OwnedTransaction> begin(sqlite3* db);
  OwnedTransaction(OwnedTransaction&&) noexcept;
  OwnedTransaction& operator=(OwnedTransaction&&) = delete;
  ~OwnedTransaction();

  sqlite3* handle() const { return db_; }
  // `invalid` if the transaction is over already or a deferred constraint is broken, `unavailable`
  // if it was not written, `outcome_unknown` if the disk failed while it was.
  [[nodiscard]] Status commit();

 private:
  OwnedTransaction(sqlite3* db, std::unique_ptr<Transaction> inner);
  sqlite3* db_;
  std::unique_ptr<Transaction> inner_;
};

template <TransactionWork Work>
auto run_and_commit(OwnedTransaction transaction, Work& work) {
  return sql::run_and_commit<OpenTransaction>(std::move(transaction), work);
}

}  // namespace detail
}  // namespace leasehold::sqlite
