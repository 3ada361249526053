// Reaching a cluster for the first time.
#pragma once

#include <memory>
#include <string>

#include "leasehold/store.h"
#include "options.h"
#include "transport.h"

namespace leasehold::etcd {

struct Opened {
  std::unique_ptr<Transport> transport;
  std::string fault;  // "etcd 3.4.23: ..." if this version has a known one that concerns locks
};

// Connects, logs in and looks at the version: `unavailable` or `invalid`, with the address and the
// server's own words.
[[nodiscard]] Result<Opened> open_transport(const Options& options, const CallContext& context);

// What a failure means while a cluster is being opened: nothing was done that matters.
Error not_opened(const std::string& address, const Failure& failure);

}  // namespace leasehold::etcd
