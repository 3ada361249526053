#include "send_txn.h"

#include <utility>

#include "answer.h"
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
          response = tl::unexpected(Failure::misfit());
        }
        done(std::move(response));
      });
}

tl::expected<wire::TxnResponse, Failure> run_txn(Transport& transport, wire::TxnRequest request,
                                                 const Limits& limits) {
  auto answer = answer_of<tl::expected<wire::TxnResponse, Failure>>(
      [&](auto done) { send_txn(transport, std::move(request), limits, std::move(done)); });
  transport.tidy();
  return answer;
}

}  // namespace leasehold::etcd
