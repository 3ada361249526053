// acquire + release on etcd, beside the same two transactions with gRPC by hand. And the hand-off
// among 32 waiters, beside the recipe: watch the predecessor.
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/sync_stream.h>

#include <memory>
#include <random>

#include "adapters/etcd/rig/server.h"
#include "bench/compare.h"
#include "bench/report.h"
#include "leasehold/client.h"
#include "leasehold/stores.h"
#include "wire.pb.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;
namespace wire = leasehold::etcd::wire;

class ByHand {
 public:
  ByHand(std::shared_ptr<grpc::Channel> channel, std::string lock)
      : channel_(std::move(channel)), prefix_(std::move(lock) + "/") {
    wire::LeaseGrantRequest grant;
    grant.set_ttl(60);
    lease_ = call<wire::LeaseGrantResponse>("/etcdserverpb.Lease/LeaseGrant", grant).id();
  }

  void acquire() {
    own_ = prefix_ + std::to_string(random_());
    wire::TxnRequest txn;
    auto* absent = txn.add_compare();
    absent->set_key(own_);
    absent->set_target(wire::Compare::CREATE);
    absent->set_result(wire::Compare::EQUAL);
    absent->set_create_revision(0);
    auto* put = txn.add_success()->mutable_put();
    put->set_key(own_);
    put->set_lease(lease_);
    ask_for_first(txn.add_success()->mutable_range());
    const auto answer = call<wire::TxnResponse>("/etcdserverpb.KV/Txn", txn);
    created_ = answer.header().revision();
    if (answer.responses(1).range().kvs(0).key() == own_) return;
    while (wait_for_predecessor()) {
    }
  }
  void release() {
    wire::TxnRequest txn;
    auto* mine = txn.add_compare();
    mine->set_key(own_);
    mine->set_target(wire::Compare::CREATE);
    mine->set_result(wire::Compare::EQUAL);
    mine->set_create_revision(created_);
    txn.add_success()->mutable_delete_range()->set_key(own_);
    if (!call<wire::TxnResponse>("/etcdserverpb.KV/Txn", txn).succeeded()) stop("lost");
  }

 private:
  void ask_for_first(wire::RangeRequest* range) const {
    range->set_key(prefix_);
    range->set_range_end(prefix_.substr(0, prefix_.size() - 1) + "0");  // '0' follows '/'
    range->set_sort_order(wire::RangeRequest::ASCEND);
    range->set_sort_target(wire::RangeRequest::CREATE);
    range->set_limit(1);
  }

  // False: there is none.
  bool wait_for_predecessor() {
    wire::RangeRequest before;
    ask_for_first(&before);
    before.set_sort_order(wire::RangeRequest::DESCEND);
    before.set_max_create_revision(created_ - 1);
    const auto last = call<wire::RangeResponse>("/etcdserverpb.KV/Range", before);
    if (last.kvs().empty()) return false;
    grpc::ClientContext context;
    const grpc::internal::RpcMethod method("/etcdserverpb.Watch/Watch",
                                           grpc::internal::RpcMethod::BIDI_STREAMING, channel_);
    using Stream = grpc::ClientReaderWriter<wire::WatchRequest, wire::WatchResponse>;
    const std::unique_ptr<Stream> stream(
        grpc::internal::ClientReaderWriterFactory<wire::WatchRequest, wire::WatchResponse>::Create(
            channel_.get(), method, &context));
    wire::WatchRequest watch;
    watch.mutable_create()->set_key(last.kvs(0).key());
    watch.mutable_create()->set_start_revision(last.header().revision() + 1);
    stream->Write(watch);
    wire::WatchResponse event;
    while (stream->Read(&event)) {
      for (const auto& it : event.events()) {
        if (it.type() == wire::Event::DELETE) {
          context.TryCancel();
          return true;
        }
      }
    }
    stop("a watch broke");
  }

  template <class Response, class Request>
  Response call(const char* name, const Request& request) {
    grpc::ClientContext context;
    Response response;
    const grpc::internal::RpcMethod method(name, grpc::internal::RpcMethod::NORMAL_RPC, channel_);
    const grpc::Status status = grpc::internal::BlockingUnaryCall<Request, Response>(
        channel_.get(), method, &context, request, &response);
    if (!status.ok()) stop("etcd, by hand: " + status.error_message());
    return response;
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const std::string prefix_;
  std::int64_t lease_ = 0;
  std::int64_t created_ = 0;
  std::string own_;
  std::mt19937_64 random_{std::random_device{}()};
};

std::shared_ptr<grpc::Channel> channel_to(const std::string& address, int number) {
  grpc::ChannelArguments own;  // gRPC shares connections of equal channels
  own.SetInt("bench.number", number);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), own);
}

Side transactions(const std::string& address) {
  return alone("the same transactions with gRPC", [channel = channel_to(address, 0)](int worker) {
    return std::make_shared<ByHand>(channel, "by-hand-" + std::to_string(worker));
  });
}

Side recipe(const std::string& address) {
  return handing_over("watch the predecessor", [address](int worker) {
    return std::make_shared<ByHand>(channel_to(address, 1 + worker), "shared");
  });
}

}  // namespace

int main(int argc, char** argv) {
  register_stores();
  const rig::EtcdServer server;
  const std::string url = "etcd://" + server.address() + "/bench";
  for (const int in_flight : {1, 50}) {
    compare("etcd: acquire + release, in flight: " + std::to_string(in_flight), one_client(url),
            transactions(server.address()), effort_of(argc, argv, in_flight),
            in_flight == 1 ? 0.95 : 2.0);
  }
  compare("etcd: hand-offs, waiters: 32", waiting_clients(url), recipe(server.address()),
          effort_of(argc, argv, 33), 1.0);
  return 0;
}
