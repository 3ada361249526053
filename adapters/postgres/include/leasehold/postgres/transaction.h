// The transaction in which a work runs on a connection of yours: see leasehold/sql/transaction.h.
// If it is over or has failed when the work returns, or is another one, or the connection is in
// pipeline mode, what is open is rolled back and the caller is told `invalid`.
#pragma once

#include <cstdint>
#include <utility>

#include "leasehold/error.h"
#include "leasehold/sql/transaction.h"

struct pg_conn;  // libpq's connection, which libpq calls PGconn

namespace leasehold::postgres {

using OpenTransaction = sql::OpenTransaction<pg_conn>;

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

}  // namespace leasehold::postgres
