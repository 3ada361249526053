// The marks of one ensemble: read, judged and written back together with the user's operations.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "blocking_session.h"
#include "fence/pass.h"
#include "leasehold/zookeeper/fence.h"

namespace leasehold::zookeeper {

// Thread safe. Calls block.
class FenceMarks {
 public:
  [[nodiscard]] static Result<std::shared_ptr<FenceMarks>> open(const Url& url);
  explicit FenceMarks(Options options) : session_(std::move(options)) {}  // for open()

  // Makes the folder of the marks.
  [[nodiscard]] Status install(const CallContext& context);
  [[nodiscard]] Result<TransactionResult> pass(const ResourceName& resource, const Token& token,
                                               const std::vector<Operation>& operations,
                                               const EnterOptions& options);
  [[nodiscard]] Result<std::optional<Fence::Node>> read_data(const std::string& path,
                                                             const CallContext& context);
  [[nodiscard]] Status adopt(const ResourceName& resource, const Lineage& lineage,
                             TokenNumber at_least, const CallContext& context);
  [[nodiscard]] Status reset(const ResourceName& resource, const CallContext& context);
  [[nodiscard]] Result<std::optional<FenceMark>> read(const ResourceName& resource,
                                                      const CallContext& context);
  // By resource name.
  [[nodiscard]] Result<std::vector<FenceMark>> all(const CallContext& context);

 private:
  std::string folder() const { return session_.options().base + "/.fence"; }
  std::string mark_path(const ResourceName& resource) const;
  // Is set once for each refusal.
  std::string refused_path(const ResourceName& resource) const;

  [[nodiscard]] Status check(const std::vector<Operation>& operations) const;
  [[nodiscard]] Result<fence::SeenMark> seen(const ResourceName& resource,
                                             const CallContext& context);
  [[nodiscard]] Result<fence::Commit> commit(const ResourceName& resource,
                                             const fence::SeenMark& before, const fence::Mark& next,
                                             const std::vector<Operation>& operations,
                                             const CallContext& context);
  [[nodiscard]] Result<fence::Commit> mark_refused(int rc, bool is_new, const CallContext& context);
  [[nodiscard]] Status count_refusal(const ResourceName& resource, const CallContext& context);
  [[nodiscard]] fence::Pass pass_at(const ResourceName& resource,
                                    const std::vector<Operation>& operations,
                                    const CallContext& context);

  BlockingSession session_;
};

CallContext context_of(const EnterOptions& options);
// `invalid` unless it is the absolute path of a node: no empty parts, no '.' and '..', no control
// characters.
[[nodiscard]] Status check_path(const std::string& path);

}  // namespace leasehold::zookeeper
