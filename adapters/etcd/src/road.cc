#include "road.h"

#include <utility>

#include "grpc_time.h"
#include "send_txn.h"

namespace leasehold::etcd {

void TransportRoad::send(wire::TxnRequest request, Limits limits, Done<wire::TxnResponse> done) {
  send_txn(transport_, std::move(request), std::move(limits), std::move(done));
}

void TransportRoad::call_at(BootTime when, std::function<void()> what) {
  MutexLock lock(mutex_);
  alarm_.emplace();
  alarm_->Set(grpc_time(when - BootClock::now()), [what = std::move(what)](bool in_time) {
    if (in_time) what();
  });
}

void TransportRoad::call_off() {
  MutexLock lock(mutex_);
  alarm_.reset();
}

}  // namespace leasehold::etcd
