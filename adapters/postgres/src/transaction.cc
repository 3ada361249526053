#include "leasehold/postgres/transaction.h"

#include "session.h"

namespace leasehold::postgres {

OwnedTransaction::OwnedTransaction(pg_conn* connection) : connection_(connection) {
  watch_transaction(connection);
}

OwnedTransaction::~OwnedTransaction() {
  if (connection_ != nullptr) Session(connection_).roll_back();
}

Status OwnedTransaction::commit() {
  return Session(std::exchange(connection_, nullptr)).commit();
}

}  // namespace leasehold::postgres
