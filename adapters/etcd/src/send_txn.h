// Sends a transaction, and takes only an answer that fits it.
#pragma once

#include "transport.h"
#include "wire.pb.h"

namespace leasehold::etcd {

// An answer that does not fit the request is an ambiguous failure.
void send_txn(Transport& transport, wire::TxnRequest request, Limits limits,
              Done<wire::TxnResponse> done);

}  // namespace leasehold::etcd
