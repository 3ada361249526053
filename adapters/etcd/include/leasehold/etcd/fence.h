// The fence for data in etcd: the user's puts and deletes are one transaction with the mark, and
// the transaction compares the mark. So a stale holder's writes are refused by etcd itself.
//
// Rules: a lower token is refused; an equal token passes only with the same request id (and not in
// `once` mode); a token of another lineage is refused and never compared; the first token to enter
// decides the lineage. Marks are kept forever, as <prefix>!fence/<resource>.
#pragma once

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

namespace leasehold::etcd {

class FenceMarks;

// Keys are as etcd has them: any bytes, at least one. They are not below the URL's prefix unless
// you write it there.
struct Get {
  std::string key;
};
struct Put {
  std::string key;
  std::string value;
};
struct Delete {
  std::string key;
};
using Operation = std::variant<Get, Put, Delete>;

struct TransactionResult {
  std::vector<std::optional<std::string>> values;  // of the Gets, in their order; none: no such key
  // It was done, by an earlier call with this sequence number or by this one, and its answer was
  // lost: there are no values.
  bool repeated = false;
};

class Fence;

// The data of one etcd cluster. Thread safe; moved and copied like a pointer. A forked child must
// not use it.
class Resources {
 public:
  // "etcd://etcd-1:2379,etcd-2:2379/prefix", as for the lock store. Marks are kept below the
  // prefix: all who share a resource must use the same. Connects, and takes at most five seconds.
  // Fails with `invalid` (URL) or `unavailable` (servers, user, version), with the server's words.
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
// - `invalid`: etcd does not accept the operations (too many, too large, one key twice), one of
//   them is on a key of the fence, the sequence number was used for other operations, or a holder
//   that numbers its writes has left it out. Nothing has changed.
// - `unavailable`, `cancelled`: it was not done.
// - `outcome_unknown`: it may have been done, or may still be. A lost reply is looked for in the
//   mark first, so this means that the time was over, or that somebody else has written since.
class Fence {
 public:
  const ResourceName& resource() const { return resource_; }

  // Raises the mark. Do it before you read: what was read before entering may be stale.
  [[nodiscard]] Status enter(const Token& token, const EnterOptions& options = {}) const;

  // Enters and does all operations, or none, in one transaction of etcd. Two transactions of one
  // holder never follow from the same mark, so that a late one cannot land on its successor even
  // without a sequence number.
  [[nodiscard]] Result<TransactionResult> transaction(const Token& token,
                                                      const std::vector<Operation>& operations,
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

}  // namespace leasehold::etcd
