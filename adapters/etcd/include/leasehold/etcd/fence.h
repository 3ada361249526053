// The fence for data in etcd: see leasehold/transaction_fence.h. Marks are kept as
// <prefix>!fence/<resource>.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "leasehold/transaction_fence.h"

namespace leasehold::etcd {

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

using Transactions = FencedTransactions<Operation, TransactionResult>;

// `invalid` besides: too many operations, too large, one key twice.
using Fence = TransactionFence<Transactions>;

class Resources : public FencedResources<Fence, Transactions> {
 public:
  using FencedResources::FencedResources;

  // "etcd://etcd-1:2379,etcd-2:2379/prefix", as for the lock store. Marks are kept below the
  // prefix: all who share a resource must use the same. Connects, and takes at most five seconds.
  // Fails with `invalid` (URL) or `unavailable` (servers, user, version), with the server's words.
  [[nodiscard]] static Result<Resources> open(std::string_view url);
};

}  // namespace leasehold::etcd
