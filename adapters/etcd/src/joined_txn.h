// Several transactions as one, and out of its answer the answer to each.
#pragma once

#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "failure.h"
#include "wire.pb.h"

namespace leasehold::etcd {

// Each decides for itself, inside of one that nothing is asked of. The server evaluates the
// conditions of all before it does anything for one of them, so no two may be about the same keys.
class JoinedTxn {
 public:
  void add(wire::TxnRequest one) { *request_.add_success()->mutable_txn() = std::move(one); }
  wire::TxnRequest take() { return std::move(request_); }

 private:
  wire::TxnRequest request_;
};

// To `one`, which was added as number `index`; it is moved out of the answer to the whole. An
// answer that does not fit it is an ambiguous failure.
tl::expected<wire::TxnResponse, Failure> take_answer_to(const wire::TxnRequest& one, int index,
                                                        wire::TxnResponse& joined);

}  // namespace leasehold::etcd
