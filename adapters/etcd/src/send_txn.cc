#include "send_txn.h"

#include <utility>

#include "transactions.h"

namespace leasehold::etcd {

void send_txn(Transport& transport, wire::TxnRequest request, Limits limits,
              Done<wire::TxnResponse> done) {
  ExpectedAnswer expected(request);
  transport.call<wire::TxnRequest, wire::TxnResponse>(
      "/etcdserverpb.KV/Txn", std::move(request), std::move(limits),
      [expected = std::move(expected),
       done = std::move(done)](tl::expected<wire::TxnResponse, Failure> response) {
        if (response && !expected.is(*response)) {
          response = tl::unexpected(Failure{.words = "the answer does not fit the transaction"});
        }
        done(std::move(response));
      });
}

}  // namespace leasehold::etcd
