// The road to an etcd cluster.
#pragma once

#include <grpcpp/alarm.h>

#include <functional>
#include <optional>

#include "kit/threads/thread_safety.h"
#include "ride.h"
#include "transport.h"

namespace leasehold::etcd {

class TransportRoad final : public Road {
 public:
  explicit TransportRoad(Transport& transport) : transport_(transport) {}

  void send(wire::TxnRequest request, Limits limits, Done<wire::TxnResponse> done) override;
  BootTime now() const override { return BootClock::now(); }
  void call_at(BootTime when, std::function<void()> what) override;
  void call_off() override;

 private:
  Transport& transport_;
  Mutex mutex_;
  std::optional<grpc::Alarm> alarm_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::etcd
