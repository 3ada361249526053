// The number as the data of a ZooKeeper node.
#include <algorithm>
#include <charconv>

#include "drill/runner/resource_module.h"
#include "kit/try.h"
#include "leasehold/zookeeper/fence.h"

namespace leasehold::drill {
namespace {

using namespace std::chrono_literals;

EnterOptions soon() {
  return {.timeout = 2s};
}

class ZookeeperResource final : public Resource {
 public:
  explicit ZookeeperResource(zookeeper::Fence fence) : fence_(std::move(fence)) {}

  // Reading is a step after entering. Who can still enter after it has read alone.
  Result<std::uint64_t> enter(const Pass& pass) override {
    const auto node = TRY(fence_.read(*pass.token, path(), soon()));
    TRY(fence_.enter(*pass.token, soon()));
    exists_ = node.has_value();
    if (!exists_) return 0;
    std::uint64_t value = 0;
    const std::string& text = node->data;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }

  Status write(const Pass& pass, std::uint64_t value) override {
    const std::string text = std::to_string(value);
    const zookeeper::Operation change = exists_
                                            ? zookeeper::Operation(zookeeper::Set{path(), text})
                                            : zookeeper::Operation(zookeeper::Create{path(), text});
    TRY(fence_.transaction(*pass.token, {change}, soon()));
    return {};
  }

  // Nobody reads without the fence here; whoever entered last may do so again.
  Result<std::uint64_t> peek() override {
    const auto mark = TRY(fence_.mark());
    if (!mark || !mark->mark) return 0;
    return enter({mark->mark, mark->mark->request});
  }

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
