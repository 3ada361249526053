// Values in ZooKeeper for compare_and_set(): a way not to need a lock. What is compared is the
// node's version: a write of any other program is noticed. But a node that was deleted and made
// anew counts from zero again, and may have the version that was seen: do not delete such nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "leasehold/compare_and_set.h"
#include "leasehold/error.h"

namespace leasehold::zookeeper {

class BlockingSession;

// One node. A small value that may be copied; thread safe. Calls block, up to five seconds each.
class Cell {
 public:
  using Value = std::string;  // any bytes, less than 1 MB
  struct Seen {
    std::optional<std::string> value;  // nothing: there is no such node
    std::int32_t version = 0;
  };

  // As new as the leader has it. Fails with `unavailable`.
  [[nodiscard]] Result<Seen> read() const;

  // True: written; a node that was not there was created. False: the node was written, created or
  // deleted since; nothing has changed.
  // Fails with `invalid` if the value is too large, or the node's parent is not there;
  // `unavailable` if nothing was written; `outcome_unknown` if the reply was lost.
  [[nodiscard]] Result<bool> write(const Seen& seen, const std::string& value) const;

 private:
  friend class Values;
  Cell(std::shared_ptr<BlockingSession> session, std::string path)
      : session_(std::move(session)), path_(std::move(path)) {}

  std::shared_ptr<BlockingSession> session_;
  std::string path_;
};

static_assert(VersionedCell<Cell>);

// The values of one ZooKeeper ensemble. Thread safe; moved and copied like a pointer. It has one
// session, which is opened again when it has ended. A forked child must not use it.
class Values {
 public:
  // "zookeeper://zk-1:2181,zk-2:2181", with the options of the lock store; the folder means nothing
  // here. Connects, and takes at most five seconds. Fails with `invalid` (URL), `unsupported` (TLS)
  // or `unavailable`, with the server's words.
  [[nodiscard]] static Result<Values> open(std::string_view url);

  // "/shop/stock": absolute. Fails with `invalid` for a wrong path.
  [[nodiscard]] Result<Cell> at(std::string_view path) const;

 private:
  explicit Values(std::shared_ptr<BlockingSession> session) : session_(std::move(session)) {}
  std::shared_ptr<BlockingSession> session_;
};

}  // namespace leasehold::zookeeper
