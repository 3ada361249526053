// The number as the data of a ZooKeeper node.
#include <algorithm>
#include <charconv>

#include "../resource_module.h"
#include "leasehold/zookeeper/fence.h"

namespace leasehold::drill {
namespace {

using namespace std::chrono_literals;

EnterOptions soon() {
  return {.within = 2s};
}

class ZookeeperResource final : public Resource {
 public:
  explicit ZookeeperResource(zookeeper::Fence fence) : fence_(std::move(fence)) {}

  // Reading is a step after entering. Who can still enter after it has read alone.
  Result<std::uint64_t> enter(const Pass& pass) override {
    const auto node = fence_.read(*pass.token, path(), soon());
    if (!node) return fail(node.error());
    if (auto still = fence_.enter(*pass.token, soon()); !still) return fail(still.error());
    exists_ = node->has_value();
    if (!exists_) return 0;
    std::uint64_t value = 0;
    const std::string& text = (*node)->data;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }

  Status write(const Pass& pass, std::uint64_t value) override {
    const std::string text = std::to_string(value);
    const zookeeper::Operation change = exists_
                                            ? zookeeper::Operation(zookeeper::Set{path(), text})
                                            : zookeeper::Operation(zookeeper::Create{path(), text});
    const auto done = fence_.transaction(*pass.token, {change}, soon());
    if (!done) return fail(done.error());
    return {};
  }

  // Nobody reads without the fence here; whoever entered last may do so again.
  Result<std::uint64_t> peek() override {
    const auto mark = fence_.mark();
    if (!mark) return fail(mark.error());
    if (!*mark || !(*mark)->mark) return 0;
    return enter({(*mark)->mark, (*mark)->mark->request});
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
  auto resources = zookeeper::Resources::open(choice.url);
  if (!resources) return fail(resources.error());
  auto fence = resources->fence(choice.name);
  if (!fence) return fail(fence.error());
  return std::make_unique<ZookeeperResource>(std::move(*fence));
}

}  // namespace
}  // namespace leasehold::drill

LEASEHOLD_DRILL_RESOURCE_MODULE(leasehold::drill::open_it)
