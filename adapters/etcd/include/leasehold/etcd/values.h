// Values in etcd for compare_and_set(): a way not to need a lock. What is compared is the key's
// mod_revision, which never comes again: a write of any other program is noticed, and so is a key
// that was deleted and made anew.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "leasehold/compare_and_set.h"
#include "leasehold/error.h"

namespace leasehold::etcd {

class KeyValues;

// One key. A small value that may be copied; thread safe. Calls block, up to five seconds each.
class Cell {
 public:
  using Value = std::string;  // any bytes
  struct Seen {
    std::optional<std::string> value;  // nothing: there is no such key
    std::int64_t mod_revision = 0;
    std::int64_t lease = 0;  // that the key is attached to; it stays so
  };

  // As new as the cluster has it. Fails with `unavailable`.
  [[nodiscard]] Result<Seen> read() const;

  // True: written. False: the key was written or deleted since; nothing has changed.
  // Fails with `unavailable` if nothing was written, also because etcd does not accept it (too
  // large, the lease has ended); `outcome_unknown` if the reply was lost.
  [[nodiscard]] Result<bool> write(const Seen& seen, const std::string& value) const;

 private:
  friend class Values;
  Cell(std::shared_ptr<KeyValues> values, std::string key)
      : values_(std::move(values)), key_(std::move(key)) {}

  std::shared_ptr<KeyValues> values_;
  std::string key_;
};

static_assert(VersionedCell<Cell>);

// The values of one etcd cluster. Thread safe; moved and copied like a pointer. A forked child must
// not use it.
class Values {
 public:
  // "etcd://etcd-1:2379,etcd-2:2379", with the options of the lock store; the prefix means nothing
  // here. Connects, and takes at most five seconds. Fails with `invalid` (URL) or `unavailable`
  // (servers, user, version), with the server's words.
  [[nodiscard]] static Result<Values> open(std::string_view url);

  // Fails with `invalid` for an empty key.
  [[nodiscard]] Result<Cell> at(std::string_view key) const;

 private:
  explicit Values(std::shared_ptr<KeyValues> values) : values_(std::move(values)) {}
  std::shared_ptr<KeyValues> values_;
};

}  // namespace leasehold::etcd
