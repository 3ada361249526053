// One Redis server, looked at from all sides.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "introduction.h"
#include "leasehold/examination.h"
#include "server.h"

namespace leasehold::redis {

enum class NodeRole {
  store,    // all locks are here
  redlock,  // it has one vote of several
  fence,    // the marks of a fence are here
};

struct NodeDiagnosis {
  std::vector<Finding> findings;
  Introduction introduction;
  bool usable = false;
  std::string run_id;  // names the server's process; empty: it did not say
  std::optional<StoreId> lineage;
};

// Fails only if the server cannot be reached.
[[nodiscard]] Result<NodeDiagnosis> examine_node(Server& server, NodeRole role, Millis ttl,
                                                 const CallContext& context);

}  // namespace leasehold::redis
