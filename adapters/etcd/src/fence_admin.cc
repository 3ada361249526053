#include "fence_admin.h"

#include "fence_marks.h"
#include "kit/try.h"

namespace leasehold::etcd {
namespace {

class EtcdFenceAdmin final : public FenceAdmin {
 public:
  explicit EtcdFenceAdmin(std::shared_ptr<FenceMarks> marks) : marks_(std::move(marks)) {}

  // A mark comes into being when it is first entered; what can be done before is to see that this
  // user may look.
  Status install() override {
    TRY(marks());
    return {};
  }

  Result<std::vector<FenceMark>> marks() override { return marks_->all(context_of({})); }

  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    return marks_->adopt(resource, lineage, at_least, context_of({}));
  }

  Status reset(const ResourceName& resource) override {
    return marks_->reset(resource, context_of({}));
  }

 private:
  std::shared_ptr<FenceMarks> marks_;
};

}  // namespace

Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url) {
  auto marks = TRY(FenceMarks::open(url));
  return std::make_unique<EtcdFenceAdmin>(std::move(marks));
}

}  // namespace leasehold::etcd
