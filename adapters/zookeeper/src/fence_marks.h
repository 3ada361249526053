// The marks of one ensemble, in one transaction with the user's operations.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "blocking_session.h"
#include "fence/marked_transactions.h"
#include "leasehold/zookeeper/fence.h"

namespace leasehold::zookeeper {

class FenceMarks final : public fence::MarkedTransactions<Transactions> {
 public:
  [[nodiscard]] static Result<std::unique_ptr<FenceMarks>> open(const Url& url);
  explicit FenceMarks(Options options) : session_(std::move(options)) {}  // for open()

  // Makes the folder; a mark comes into being when it is first entered.
  Status install() override;
  Result<std::optional<FencedNode>> read_after_entering(const ResourceName& resource,
                                                        const Token& token, const std::string& path,
                                                        const EnterOptions& options) override;

 private:
  std::string folder() const { return session_.options().base + "/.fence"; }
  std::string mark_path(const ResourceName& resource) const;
  // Is set once for each refusal.
  std::string refused_path(const ResourceName& resource) const;

  Result<Description> describe(const Operations& operations) const override;
  Result<fence::SeenMark> read(const ResourceName& resource, const CallContext& context) override;
  Result<fence::Commit> commit(const ResourceName& resource, const fence::SeenMark& before,
                               const fence::Mark& next, const Operations& operations,
                               const CallContext& context, TransactionResult& outcome) override;
  Status count_refusal(const ResourceName& resource, const CallContext& context) override;
  Result<std::optional<FenceMark>> shown_mark(const ResourceName& resource,
                                              const CallContext& context) override;
  Result<std::vector<FenceMark>> all_marks(const CallContext& context) override;

  [[nodiscard]] Status make_folder(const CallContext& context);
  [[nodiscard]] Result<fence::Commit> mark_refused(int rc, bool is_new, const CallContext& context);

  BlockingSession session_;
};

}  // namespace leasehold::zookeeper
