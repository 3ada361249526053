// Values in etcd for compare_and_set(): see leasehold/keyed_values.h. What is compared is the key's
// mod_revision, which never comes again: a write of any other program is noticed, and so is a key
// that was deleted and made again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leasehold/keyed_values.h"

namespace leasehold::etcd {

struct SeenKey {
  std::optional<std::string> value;  // nothing: there is no such key
  std::int64_t mod_revision = 0;
  std::int64_t lease = 0;  // that the key is attached to; it stays so
};

// Reads as new as the cluster has it. A key has at least one byte.
using Cell = KeyedCell<SeenKey>;
static_assert(VersionedCell<Cell>);

class Values : public KeyedValues<SeenKey> {
 public:
  using KeyedValues::KeyedValues;

  // "etcd://etcd-1:2379,etcd-2:2379", with the options of the lock store; the prefix means nothing
  // here. Connects, and takes at most five seconds. Fails with `invalid` (URL) or `unavailable`
  // (servers, user, version), with the server's words.
  [[nodiscard]] static Result<Values> open(std::string_view url);
};

}  // namespace leasehold::etcd
