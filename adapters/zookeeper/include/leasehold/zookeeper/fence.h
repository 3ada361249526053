// The fence for data in ZooKeeper: the user's changes are one transaction with the mark, and the
// transaction checks the mark's version. So a stale holder's changes are refused by ZooKeeper
// itself.
//
// Rules: a lower token is refused; an equal token passes only with the same request id (and not in
// `once` mode); a token of another lineage is refused and never compared; the first token to enter
// decides the lineage. Marks are kept forever, as nodes <folder>/.fence/<resource>.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "leasehold/enter_options.h"
#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/name.h"
#include "leasehold/token.h"

namespace leasehold::zookeeper {

class FenceMarks;

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

class Fence;

// The data of one ZooKeeper ensemble. Thread safe; moved and copied like a pointer. It has one
// session, which is opened again when it has ended; nothing depends on how long it lasts. A forked
// child must not use it.
class Resources {
 public:
  // "zookeeper://zk-1:2181,zk-2:2181/folder", as for the lock store. Marks are kept in the folder:
  // all who share a resource must use the same. Connects, and takes at most five seconds.
  // Fails with `invalid` (URL), `unsupported` (TLS) or `unavailable`, with the server's words.
  [[nodiscard]] static Result<Resources> open(std::string_view url);

  // Fails with `invalid` for a wrong name (1 to 512 bytes of UTF-8 without control characters).
  [[nodiscard]] Result<Fence> fence(std::string_view resource) const;

  // All marks, by resource name.
  [[nodiscard]] Result<std::vector<FenceMark>> marks() const;

 private:
  explicit Resources(std::shared_ptr<FenceMarks> marks) : marks_(std::move(marks)) {}
  std::shared_ptr<FenceMarks> marks_;
};

// One resource behind the fence. A small value that may be copied; thread safe. Calls block, two
// round trips each as long as nobody else enters at the same time.
//
// Every call fails with
// - `fenced_out`: refused, and the refusal is counted; error.refusal has both numbers. Nothing has
//   changed.
// - `invalid`: a path is wrong or the fence's own, the operations are larger than 1 MB, ZooKeeper
//   refused one of them (no such node, another version; error.store_words), the sequence number was
//   used for other operations, or a holder that numbers its writes has left it out. Nothing has
//   changed.
// - `unavailable`, `cancelled`: it was not done.
// - `outcome_unknown`: it may have been done, or may still be. A lost reply is looked for in the
//   mark first, so this means that the time was over, or that somebody else has written since.
class Fence {
 public:
  const ResourceName& resource() const { return resource_; }

  // Raises the mark. Do it before you read: what was read before entering may be stale.
  [[nodiscard]] Status enter(const Token& token, const EnterOptions& options = {}) const;

  // Enters and does all operations, or none, in one transaction of ZooKeeper. Two transactions of
  // one holder never follow from the same mark, so that a late one cannot land on its successor
  // even without a sequence number.
  [[nodiscard]] Result<TransactionResult> transaction(const Token& token,
                                                      const std::vector<Operation>& operations,
                                                      const EnterOptions& options = {}) const;

  // Enters, and then reads the node; nothing if there is none. Two steps: another holder may enter
  // in between, and what is read may be newer than the entry, but never older.
  struct Node {
    std::string data;
    std::int32_t version = 0;
  };
  [[nodiscard]] Result<std::optional<Node>> read(const Token& token, const std::string& path,
                                                 const EnterOptions& options = {}) const;

  // What is remembered of this resource; nothing if it was never entered.
  [[nodiscard]] Result<std::optional<FenceMark>> mark() const;

 private:
  friend class Resources;
  Fence(std::shared_ptr<FenceMarks> marks, ResourceName resource)
      : marks_(std::move(marks)), resource_(std::move(resource)) {}

  std::shared_ptr<FenceMarks> marks_;
  ResourceName resource_;
};

}  // namespace leasehold::zookeeper
