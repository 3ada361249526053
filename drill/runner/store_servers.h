// Servers that a drill starts for itself, and what can be done to them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chance.h"
#include "leasehold/error.h"
#include "leasehold/time.h"
#include "plan.h"

namespace leasehold::drill {

// Not thread safe. Its servers go with it. Calls throw std::runtime_error if a server does not do
// what it should.
class StoreServers {
 public:
  virtual ~StoreServers() = default;

  virtual std::string url() const = 0;  // by which workers reach the store or the resource

  // A fault that lasts until end(); one at a time. False: it did not happen. Only those that
  // why_not() does not refuse.
  virtual void begin(Fault fault, Millis ttl, Chance& chance) = 0;
  virtual bool end(Fault fault) = 0;
};

// The technologies that a drill can start: "postgres", "postgres-advisory", "redis", "redlock",
// "etcd", "zookeeper".
const std::vector<std::string>& startable_stores();

// Why this store cannot have the fault, in one sentence; nothing if it can.
std::optional<std::string> why_not(std::string_view technology, Fault fault);

// Starts what it takes to inject `faults`.
std::unique_ptr<StoreServers> start_servers(const std::string& technology,
                                            const std::vector<Fault>& faults);

}  // namespace leasehold::drill
