// The parts that every operation of one store works with.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "claims.h"
#include "keys.h"
#include "leasehold/store.h"
#include "leases.h"
#include "options.h"
#include "ride.h"
#include "road.h"
#include "send_txn.h"
#include "transactions.h"
#include "transport.h"
#include "watcher.h"

namespace leasehold::etcd {

struct Session {
  Session(Options options, std::unique_ptr<Transport> opened, WatchListener& listener)
      : address(std::move(options.address)),
        keys(std::move(options.prefix)),
        transport(std::move(opened)),
        ride(std::make_shared<Ride>(std::make_unique<TransportRoad>(*transport))),
        leases(*transport),
        watcher(*transport, listener) {}

  const std::string address;
  const Keys keys;
  const std::unique_ptr<Transport> transport;
  const std::shared_ptr<Ride> ride;
  Leases leases;
  Claims claims;
  Watcher watcher;

  void txn(wire::TxnRequest request, Limits limits, Done<wire::TxnResponse> done) {
    send_txn(*transport, std::move(request), std::move(limits), std::move(done));
  }
  Error error(const Failure& failure) const { return failure.error(address); }
  void cancel(const std::vector<std::int64_t>& watches) {
    for (const std::int64_t watch : watches) watcher.cancel(watch);
  }
};

inline Limits once_within(const CallContext& context) {
  return {.deadline = context.deadline, .stop = context.stop, .repeat = false};
}
inline Limits repeated_within(const CallContext& context) {
  return {.deadline = context.deadline, .stop = context.stop, .repeat = true};
}

// Whether it is this program's format, or that of a store that is not begun yet.
bool format_fits(const wire::KeyValue* lineage, const wire::KeyValue* format);
// `unsupported` if the keys of this store are of another format, with what to do.
void check_format(Session& session, const Limits& limits, Completion<std::monostate> done);
// The store's lineage, made now if there is none. Two who make it at once agree.
void ensure_lineage(Session& session, const Limits& limits, Done<StoreId> done);
// Nothing if the key is missing or not ours.
std::optional<StoreId> lineage_in(const wire::KeyValue* kv);

// Deletes the request's key (unless `claim.created` is 0: only if it was created there, and is not
// kept) and that of its slot, and sees to it that no attempt under the leases at risk puts them
// there later. True: it was there.
void withdraw(Session& session, const RequestId& request, Claim claim, const Limits& limits,
              Done<bool> done);

std::int64_t wall_clock_ms();

}  // namespace leasehold::etcd
