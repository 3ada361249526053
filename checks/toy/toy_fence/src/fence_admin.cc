// A fence that has refused three times, and a pattern of its own.
#include "leasehold/fence_admin.h"
#include "adapters/toy_fence/description.h"
#include "kit/try.h"
#include "leasehold/toy_fence/adapter.h"

namespace leasehold::toy_fence {
namespace {

class ToyFence final : public FenceAdmin {
 public:
  Status install() override { return {}; }
  Result<std::vector<FenceMark>> marks() override {
    FenceMark mark{ResourceName::parse("sandpit").value(), {}, {}, 3, {}};
    return std::vector{mark};
  }
  Status adopt(const ResourceName&, const Lineage&, TokenNumber) override { return {}; }
};

struct Rattle {
  static constexpr std::string_view kOffer = "rattle";
};

Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url) {
  TRY(technology().check_options(url, FenceAdmin::kOffer));
  return std::make_unique<ToyFence>();
}

}  // namespace

std::vector<Adapter> adapters() {
  return {{.scheme = "toyfence",
           .open_store = {},
           .offers = Offers().with<FenceAdmin>(open_fence_admin).with<Rattle>([](const Url&) {
             return std::make_unique<Rattle>();
           })}};
}

}  // namespace leasehold::toy_fence
