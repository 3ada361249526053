// Sends a transaction, and takes only an answer that fits it.
#pragma once

#include "transport.h"
#include "wire.pb.h"

namespace leasehold::etcd {

// An answer that does not fit the request is an ambiguous failure.
void send_txn(Transport& transport, wire::TxnRequest request, Limits limits,
              Done<wire::TxnResponse> done);

// The same, and waits for the answer. Not on a thread of gRPC.
[[nodiscard]] tl::expected<wire::TxnResponse, Failure> run_txn(Transport& transport,
                                                               wire::TxnRequest request,
                                                               const Limits& limits);

}  // namespace leasehold::etcd
