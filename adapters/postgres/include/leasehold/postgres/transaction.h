// The transaction in which a work runs on the user's own connection. Used by Fence, Claim and Once.
#pragma once

#include <cstdint>
#include <utility>

#include "leasehold/error.h"
#include "leasehold/sql/transaction_work.h"

struct pg_conn;  // libpq's connection, which libpq calls PGconn

namespace leasehold::postgres {

// What a work receives. Everything the work does on handle() is committed together, or not at all.
// The work must not end the transaction: no COMMIT, no ROLLBACK, no PREPARE TRANSACTION (savepoints
// are fine). If the transaction is over or has failed when the work returns, or is another one, or
// the connection is in pipeline mode, what is open is rolled back and the caller is told `invalid`;
// what the work has committed itself stays.
class OpenTransaction {
 public:
  explicit OpenTransaction(pg_conn* connection) : connection_(connection) {}
  OpenTransaction(const OpenTransaction&) = delete;
  OpenTransaction& operator=(const OpenTransaction&) = delete;

  // The connection that was given to Fence, Claim or Once.
  pg_conn* handle() const { return connection_; }

 private:
  pg_conn* connection_;
};

// A work takes an OpenTransaction& and returns Status or Result<T>.
template <class Work>
concept TransactionWork = sql::TransactionWork<Work, OpenTransaction>;

// The server's, which no other transaction of it has.
enum class TransactionId : std::int64_t {};

// For Fence, Claim and Once: a transaction that has begun; rolls back unless committed. Not thread
// safe.
class [[nodiscard]] OwnedTransaction {
 public:
  OwnedTransaction(pg_conn* connection, TransactionId id);
  OwnedTransaction(OwnedTransaction&& other) noexcept
      : connection_(std::exchange(other.connection_, nullptr)), id_(other.id_) {}
  OwnedTransaction& operator=(OwnedTransaction&&) = delete;
  ~OwnedTransaction();

  pg_conn* handle() const { return connection_; }
  // `invalid` if the transaction is over or has failed already, or is another one, or the
  // connection is in pipeline mode, or a deferred constraint is broken; `unavailable` if the server
  // said that it did not commit; `outcome_unknown` if the connection was lost before it said so.
  [[nodiscard]] Status commit();

 private:
  pg_conn* connection_;
  TransactionId id_;
};

template <TransactionWork Work>
auto run_and_commit(OwnedTransaction transaction, Work& work) {
  return sql::run_and_commit<OpenTransaction>(std::move(transaction), work);
}

}  // namespace leasehold::postgres
