// The fence of data with transactions that can compare: the user's operations are one transaction
// with the mark, and the transaction compares the mark. So a stale holder's operations are refused
// by the resource itself. etcd::Fence and zookeeper::Fence are of this kind.
//
// Rules: a lower token is refused; an equal token passes only with the same request id (and not
// with single entry); a token of another lineage is refused and never compared; the first token to
// enter decides the lineage. Marks are kept forever.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "leasehold/enter_options.h"
#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/name.h"
#include "leasehold/token.h"

namespace leasehold {

// What an adapter implements for the classes below, which have the contracts. Thread safe.
template <class AnOperation, class AnAnswer>
class FencedTransactions : public FenceAdmin {
 public:
  using Operation = AnOperation;
  using Answer = AnAnswer;

  [[nodiscard]] virtual Result<Answer> transact(const ResourceName& resource, const Token& token,
                                                const std::vector<Operation>& operations,
                                                const EnterOptions& options) = 0;
  [[nodiscard]] virtual Result<std::optional<FenceMark>> mark(const ResourceName& resource) = 0;
};

// One resource behind the fence. A small value that may be copied; thread safe. Calls block, two
// round trips each as long as nobody else enters at the same time.
//
// Every call fails with
// - `fenced_out`: refused, and the refusal is counted; error.refusal has both numbers. Nothing has
//   changed.
// - `invalid`: the store does not accept the operations, one of them is on the fence's own data,
// the
//   sequence number was used for other operations, or a holder that numbers its writes has left it
//   out. Nothing has changed.
// - `unavailable`, `cancelled`: it was not done.
// - `outcome_unknown`: it may have been done, or may still be. A lost reply is looked for in the
//   mark first, so this means that the time was over, or that somebody else has written since.
template <class Transactions>
class TransactionFence {
 public:
  TransactionFence(std::shared_ptr<Transactions> data, ResourceName resource)
      : data_(std::move(data)), resource_(std::move(resource)) {}

  const ResourceName& resource() const { return resource_; }

  // Raises the mark. Do it before you read: what was read before entering may be stale.
  [[nodiscard]] Status enter(const Token& token, const EnterOptions& options = {}) const {
    auto entered = data_->transact(resource_, token, {}, options);
    if (!entered) return fail(std::move(entered.error()));
    return {};
  }

  // Enters and does all operations, or none, in one transaction of the store. Two transactions of
  // one holder never follow from the same mark, so that a late one cannot land on its successor
  // even without a sequence number.
  [[nodiscard]] Result<typename Transactions::Answer> transaction(
      const Token& token, const std::vector<typename Transactions::Operation>& operations,
      const EnterOptions& options = {}) const {
    return data_->transact(resource_, token, operations, options);
  }

  // What is remembered of this resource; nothing if it was never entered.
  [[nodiscard]] Result<std::optional<FenceMark>> mark() const { return data_->mark(resource_); }

 protected:
  Transactions& data() const { return *data_; }

 private:
  std::shared_ptr<Transactions> data_;
  ResourceName resource_;
};

// The data of one server or cluster. Thread safe; moved and copied like a pointer. A forked child
// must not use it.
template <class Fence, class Transactions>
class FencedResources {
 public:
  explicit FencedResources(std::shared_ptr<Transactions> data) : data_(std::move(data)) {}

  // Fails with `invalid` for a wrong name (1 to 512 bytes of UTF-8 without control characters).
  [[nodiscard]] Result<Fence> fence(std::string_view resource) const {
    auto name = ResourceName::parse(resource);
    if (!name) return fail(std::move(name.error()));
    return Fence(data_, std::move(*name));
  }

  // All marks, by resource name.
  [[nodiscard]] Result<std::vector<FenceMark>> marks() const { return data_->marks(); }

 private:
  std::shared_ptr<Transactions> data_;
};

}  // namespace leasehold
