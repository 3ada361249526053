// The marks of one cluster, in one transaction with the user's operations.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fence/marked_transactions.h"
#include "keys.h"
#include "leasehold/etcd/fence.h"
#include "opening.h"
#include "transactions.h"

namespace leasehold::etcd {

class FenceMarks final : public fence::MarkedTransactions<Transactions> {
 public:
  [[nodiscard]] static Result<std::unique_ptr<FenceMarks>> open(const Url& url);
  FenceMarks(Options options, std::unique_ptr<Transport> transport)
      : address_(std::move(options.address)),
        keys_(std::move(options.prefix)),
        transport_(std::move(transport)) {}

  Status install() override;

 private:
  Result<Description> describe(const Operations& operations) const override;
  Result<fence::SeenMark> read(const ResourceName& resource, const CallContext& context) override;
  Result<fence::Commit> commit(const ResourceName& resource, const fence::SeenMark& before,
                               const fence::Mark& next, const Operations& operations,
                               const CallContext& context, TransactionResult& outcome) override;
  Status count_refusal(const ResourceName& resource, const CallContext& context) override;
  Result<std::optional<FenceMark>> shown_mark(const ResourceName& resource,
                                              const CallContext& context) override;
  Result<std::vector<FenceMark>> all_marks(const CallContext& context) override;

  [[nodiscard]] Result<wire::TxnResponse> txn(wire::TxnRequest request, const Limits& limits);
  // A transaction that changes nothing.
  [[nodiscard]] Result<wire::TxnResponse> ask(wire::TxnRequest request, const CallContext& context);
  [[nodiscard]] Result<fence::SeenMark> seen(const ResourceName& resource,
                                             const wire::KeyValue* kv) const;

  const std::string address_;
  const Keys keys_;
  const std::unique_ptr<Transport> transport_;
};

}  // namespace leasehold::etcd
