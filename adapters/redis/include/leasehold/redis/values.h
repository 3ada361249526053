// Values in Redis for compare_and_set(): see leasehold/keyed_values.h. As good as Redis is: it
// answers before a replica or the disk has the write, so that a failover or a restart may take back
// what was told as written. Guarantee: efficiency.
//
// A value is an ordinary string key, which other programs may read and write too. What is compared
// is the value itself: one that was changed and changed back in between counts as unchanged. The
// new value is right all the same as long as it depends on nothing but the old one. If it depends
// on more, keep a counter in the value.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "leasehold/keyed_values.h"

namespace leasehold::redis {

struct SeenValue {
  std::optional<std::string> value;  // nothing: there is no such key
};

// A key is not empty, and does not begin with "leasehold:". One that holds something that is no
// string is `unavailable`. A key's time to live stays as it was when it is written.
using Cell = KeyedCell<SeenValue>;
static_assert(VersionedCell<Cell>);

// Each call has a connection of its own, up to `?connections=` (64).
class Values : public KeyedValues<SeenValue> {
 public:
  using KeyedValues::KeyedValues;

  // "redis://host:6379/0", with the options of the lock store; `prefix` means nothing here.
  // Connects. Fails with `invalid` (URL), `unavailable` (server, also Redis before 5.0) or
  // `unsupported` (a cluster).
  [[nodiscard]] static Result<Values> open(std::string_view url);
};

}  // namespace leasehold::redis
