// Values in Redis for compare_and_set(). A way not to need a lock, as good as Redis is: it answers
// before a replica or the disk has the write, so that a failover or a restart may take back what
// was told as written. Guarantee: efficiency.
//
// A value is an ordinary string key, which other programs may read and write too. What is compared
// is the value itself: one that was changed and changed back in between counts as unchanged. The
// new value is right all the same as long as it depends on nothing but the old one. If it depends
// on more, keep a counter in the value.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "leasehold/compare_and_set.h"
#include "leasehold/error.h"

namespace leasehold::redis {

class Server;

// One key. A small value that may be copied; thread safe. Calls block, up to five seconds each.
class Cell {
 public:
  using Value = std::string;  // any bytes
  struct Seen {
    std::optional<std::string> value;  // nothing: there is no such key
  };

  // Fails with `unavailable`, if the key holds something that is no string too.
  [[nodiscard]] Result<Seen> read() const;

  // True: written; the key's time to live stays as it was. False: it has another value by now.
  // Fails with `unavailable` if nothing was written, `outcome_unknown` if the reply was lost.
  [[nodiscard]] Result<bool> write(const Seen& seen, const std::string& value) const;

 private:
  friend class Values;
  Cell(std::shared_ptr<Server> server, std::string key)
      : server_(std::move(server)), key_(std::move(key)) {}

  std::shared_ptr<Server> server_;
  std::string key_;
};

static_assert(VersionedCell<Cell>);

// The values of one Redis server. Thread safe; moved and copied like a pointer. Each call has a
// connection of its own, up to `?connections=` (64). A forked child must open its own.
class Values {
 public:
  // "redis://host:6379/0", with the options of the lock store; `prefix` means nothing here.
  // Connects. Fails with `invalid` (URL), `unavailable` (server, also Redis before 5.0) or
  // `unsupported` (a cluster).
  [[nodiscard]] static Result<Values> open(std::string_view url);

  // Fails with `invalid` for an empty key, and for those that begin with "leasehold:".
  [[nodiscard]] Result<Cell> at(std::string_view key) const;

 private:
  explicit Values(std::shared_ptr<Server> server) : server_(std::move(server)) {}
  std::shared_ptr<Server> server_;
};

}  // namespace leasehold::redis
