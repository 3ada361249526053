#include "leasehold/postgres/transaction.h"

#include "session.h"

namespace leasehold::postgres {

OwnedTransaction::OwnedTransaction(pg_conn* connection, TransactionId id)
    : connection_(connection), id_(id) {
  watch_transaction(connection, id);
}

OwnedTransaction::~OwnedTransaction() {
  if (connection_ != nullptr) Session(connection_).roll_back();
}

Status OwnedTransaction::commit() {
  return Session(std::exchange(connection_, nullptr)).commit(id_);
}

}  // namespace leasehold::postgres
