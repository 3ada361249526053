// Values in ZooKeeper for compare_and_set(): see leasehold/keyed_values.h. What is compared is the
// node's version: a write of any other program is noticed. But a node that was deleted and made
// anew counts from zero again, and may have the version that was seen: do not delete such nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leasehold/keyed_values.h"

namespace leasehold::zookeeper {

struct SeenNode {
  std::optional<std::string> value;  // nothing: there is no such node
  std::int32_t version = 0;
};

// Reads as new as the leader has it. A key is an absolute path, "/shop/stock", whose parent is
// there; with it a value has less than 1 MB.
using Cell = KeyedCell<SeenNode>;
static_assert(VersionedCell<Cell>);

// It has one session, which is opened again when it has ended.
class Values : public KeyedValues<SeenNode> {
 public:
  using KeyedValues::KeyedValues;

  // "zookeeper://zk-1:2181,zk-2:2181", with the options of the lock store; the folder means nothing
  // here. Connects, and takes at most five seconds. Fails with `invalid` (URL), `unsupported` (TLS)
  // or `unavailable`, with the server's words.
  [[nodiscard]] static Result<Values> open(std::string_view url);
};

}  // namespace leasehold::zookeeper
