// The number as a key of etcd.
#include "drill/runner/resource_module.h"
#include "kit/text/number.h"
#include "kit/try.h"
#include "leasehold/etcd/fence.h"

namespace leasehold::drill {
namespace {

class EtcdResource final : public Resource {
 public:
  explicit EtcdResource(etcd::Fence fence) : fence_(std::move(fence)) {}

  Result<std::uint64_t> enter(const Pass& pass) override {
    const auto got = TRY(fence_.transaction(*pass.token, {etcd::Get{key()}}, soon()));
    if (got.repeated || got.values.empty()) {
      return fail(ErrorCode::outcome_unknown, "it entered, but what it read was lost");
    }
    return kit::number_in<std::uint64_t>(got.values.front().value_or("0")).value_or(0);
  }

  Status write(const Pass& pass, std::uint64_t value) override {
    TRY(fence_.transaction(*pass.token, {etcd::Put{key(), std::to_string(value)}}, soon()));
    return {};
  }

  Result<std::uint64_t> peek() override { return enter_again(*this, TRY(fence_.mark())); }

 private:
  std::string key() const { return "drill-cell/" + fence_.resource().str(); }
  etcd::Fence fence_;
};

Result<std::unique_ptr<Resource>> open_it(const ResourceChoice& choice) {
  auto resources = TRY(etcd::Resources::open(choice.url));
  auto fence = TRY(resources.fence(choice.name));
  return std::make_unique<EtcdResource>(std::move(fence));
}

}  // namespace
}  // namespace leasehold::drill

LEASEHOLD_DRILL_RESOURCE_MODULE(leasehold::drill::open_it)
