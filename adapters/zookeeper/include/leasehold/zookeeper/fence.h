// The fence for data in ZooKeeper: see leasehold/transaction_fence.h. What a transaction compares
// is the version of the mark's node. Marks are kept as nodes <folder>/.fence/<resource>.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "leasehold/transaction_fence.h"

namespace leasehold::zookeeper {

// Paths are absolute: "/invoices/1234". They are not below the URL's folder unless you write it
// there. A version is what the node must have; -1: any.
struct Create {
  std::string path;  // its parent must exist
  std::string data = {};
};
struct Set {
  std::string path;
  std::string data = {};
  std::int32_t version = -1;
};
struct Delete {
  std::string path;
  std::int32_t version = -1;
};
struct Check {
  std::string path;
  std::int32_t version = -1;
};
using Operation = std::variant<Create, Set, Delete, Check>;

struct TransactionResult {
  // It was done, by an earlier call with this sequence number or by this one, and its answer was
  // lost.
  bool repeated = false;
};

struct FencedNode {
  std::string data;
  std::int32_t version = 0;
};

class Transactions : public FencedTransactions<Operation, TransactionResult> {
 public:
  [[nodiscard]] virtual Result<std::optional<FencedNode>> read_after_entering(
      const ResourceName& resource, const Token& token, const std::string& path,
      const EnterOptions& options) = 0;
};

// `invalid` besides: a path is wrong, the operations are larger than 1 MB, ZooKeeper refused one of
// them (no such node, another version; error.store_words).
class Fence : public TransactionFence<Transactions> {
 public:
  using TransactionFence::TransactionFence;
  using Node = FencedNode;

  // Enters, and then reads the node; nothing if there is none. Two steps: another holder may enter
  // in between, and what is read may be newer than the entry, but never older.
  [[nodiscard]] Result<std::optional<Node>> read(const Token& token, const std::string& path,
                                                 const EnterOptions& options = {}) const {
    return data().read_after_entering(resource(), token, path, options);
  }
};

// It has one session, which is opened again when it has ended; nothing depends on how long it
// lasts.
class Resources : public FencedResources<Fence, Transactions> {
 public:
  using FencedResources::FencedResources;

  // "zookeeper://zk-1:2181,zk-2:2181/folder", as for the lock store. Marks are kept in the folder:
  // all who share a resource must use the same. Connects, and takes at most five seconds.
  // Fails with `invalid` (URL), `unsupported` (TLS) or `unavailable`, with the server's words.
  [[nodiscard]] static Result<Resources> open(std::string_view url);
};

}  // namespace leasehold::zookeeper
