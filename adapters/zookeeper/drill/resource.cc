// The number as the data of a ZooKeeper node.
#include <algorithm>

#include "drill/runner/resource_module.h"
#include "kit/text/number.h"
#include "kit/try.h"
#include "leasehold/zookeeper/fence.h"

namespace leasehold::drill {
namespace {

class ZookeeperResource final : public Resource {
 public:
  explicit ZookeeperResource(zookeeper::Fence fence) : fence_(std::move(fence)) {}

  // Reading is a step after entering. Who can still enter after it has read alone.
  Result<std::uint64_t> enter(const Pass& pass) override {
    const auto node = TRY(fence_.read(*pass.token, path(), soon()));
    TRY(fence_.enter(*pass.token, soon()));
    exists_ = node.has_value();
    return exists_ ? kit::number_in<std::uint64_t>(node->data).value_or(0) : 0;
  }

  Status write(const Pass& pass, std::uint64_t value) override {
    const std::string text = std::to_string(value);
    const zookeeper::Operation change = exists_
                                            ? zookeeper::Operation(zookeeper::Set{path(), text})
                                            : zookeeper::Operation(zookeeper::Create{path(), text});
    TRY(fence_.transaction(*pass.token, {change}, soon()));
    return {};
  }

  Result<std::uint64_t> peek() override { return enter_again(*this, TRY(fence_.mark())); }

 private:
  std::string path() const {
    std::string name = fence_.resource().str();
    std::replace(name.begin(), name.end(), '/', '-');
    return "/cell-" + name;
  }

  zookeeper::Fence fence_;
  bool exists_ = false;
};

Result<std::unique_ptr<Resource>> open_it(const ResourceChoice& choice) {
  auto resources = TRY(zookeeper::Resources::open(choice.url));
  auto fence = TRY(resources.fence(choice.name));
  return std::make_unique<ZookeeperResource>(std::move(fence));
}

}  // namespace
}  // namespace leasehold::drill

LEASEHOLD_DRILL_RESOURCE_MODULE(leasehold::drill::open_it)
