// The marks of one cluster: read, judged and written back together with the user's operations.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fence/pass.h"
#include "keys.h"
#include "leasehold/etcd/fence.h"
#include "opening.h"
#include "transactions.h"

namespace leasehold::etcd {

// Thread safe. Calls block.
class FenceMarks {
 public:
  [[nodiscard]] static Result<std::shared_ptr<FenceMarks>> open(const Url& url);

  [[nodiscard]] Result<TransactionResult> pass(const ResourceName& resource, const Token& token,
                                               const std::vector<Operation>& operations,
                                               const EnterOptions& options);
  [[nodiscard]] Status adopt(const ResourceName& resource, const Lineage& lineage,
                             TokenNumber at_least, const CallContext& context);
  [[nodiscard]] Status reset(const ResourceName& resource, const CallContext& context);
  [[nodiscard]] Result<std::optional<FenceMark>> read(const ResourceName& resource,
                                                      const CallContext& context);
  // By resource name.
  [[nodiscard]] Result<std::vector<FenceMark>> all(const CallContext& context);

 private:
  FenceMarks(Options options, std::unique_ptr<Transport> transport)
      : address_(std::move(options.address)),
        keys_(std::move(options.prefix)),
        transport_(std::move(transport)) {}

  [[nodiscard]] Status check(const std::vector<Operation>& operations) const;
  [[nodiscard]] Result<fence::SeenMark> seen(const ResourceName& resource,
                                             const wire::KeyValue* kv) const;
  [[nodiscard]] Result<wire::TxnResponse> txn(wire::TxnRequest request, const Limits& limits);
  [[nodiscard]] Result<fence::SeenMark> read_mark(const ResourceName& resource,
                                                  const CallContext& context);
  [[nodiscard]] Status count_refusal(const ResourceName& resource, const CallContext& context);
  // The answers of a transaction that was done are left in `outcome`.
  [[nodiscard]] Result<fence::Commit> commit(const ResourceName& resource,
                                             const fence::SeenMark& seen, const fence::Mark& next,
                                             const std::vector<Operation>& operations,
                                             const CallContext& context,
                                             TransactionResult& outcome);
  [[nodiscard]] fence::Pass pass_at(const ResourceName& resource,
                                    const std::vector<Operation>& operations,
                                    const CallContext& context, TransactionResult& outcome);

  const std::string address_;
  const Keys keys_;
  const std::unique_ptr<Transport> transport_;
};

CallContext context_of(const EnterOptions& options);

}  // namespace leasehold::etcd
