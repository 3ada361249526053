#include "joined_txn.h"

#include <utility>

#include "transactions.h"

namespace leasehold::etcd {

tl::expected<wire::TxnResponse, Failure> take_answer_to(const wire::TxnRequest& one, int index,
                                                        wire::TxnResponse& joined) {
  if (joined.succeeded() && index < joined.responses_size()) {
    wire::TxnResponse answer = std::move(*joined.mutable_responses(index)->mutable_txn());
    // All is done at one revision, which only the header of the whole tells.
    *answer.mutable_header() = joined.header();
    if (ExpectedAnswer(one).is(answer)) return answer;
  }
  return tl::unexpected(Failure::misfit());
}

}  // namespace leasehold::etcd
