// The number as a key of Redis.
#include "drill/runner/resource_module.h"
#include "kit/text/number.h"
#include "kit/try.h"
#include "leasehold/redis/fence.h"

namespace leasehold::drill {
namespace {

class RedisResource final : public Resource {
 public:
  RedisResource(redis::Resources resources, redis::Fence fence, Fencing fencing)
      : resources_(std::move(resources)), fence_(std::move(fence)), fencing_(fencing) {}

  Result<std::uint64_t> enter(const Pass& pass) override {
    if (fencing_ == Fencing::token) return value_of(fence_.run(*pass.token, get(), soon()));
    auto claim = TRY(resources_.claim(name(), pass.request, soon()));
    claim_ = std::move(claim);
    return value_of(claim_->run(get(), soon()));
  }

  Status write(const Pass& pass, std::uint64_t value) override {
    const redis::Command set{"SET", key(), std::to_string(value)};
    EnterOptions numbered = soon();
    numbered.sequence = pass.sequence;
    TRY(fencing_ == Fencing::token ? fence_.run(*pass.token, set, numbered)
                                   : claim_->run(set, numbered));
    return {};
  }

  Result<std::uint64_t> peek() override {
    if (fencing_ == Fencing::claim) {
      return enter({std::nullopt, RequestId::random(system_random())});
    }
    return enter_again(*this, TRY(fence_.mark(soon())));
  }

 private:
  const std::string& name() const { return fence_.resource().str(); }
  std::string key() const { return "drill:" + name(); }
  redis::Command get() const { return {"GET", key()}; }

  static Result<std::uint64_t> value_of(const Result<redis::Reply>& reply) {
    if (!reply) return fail(reply.error());
    return kit::number_in<std::uint64_t>(reply->text).value_or(0);
  }

  redis::Resources resources_;
  redis::Fence fence_;
  std::optional<redis::Claim> claim_;
  const Fencing fencing_;
};

Result<std::unique_ptr<Resource>> open_it(const ResourceChoice& choice) {
  auto resources = TRY(redis::Resources::open(choice.url));
  auto fence = TRY(resources.fence(choice.name));
  return std::make_unique<RedisResource>(std::move(resources), std::move(fence), choice.fencing);
}

}  // namespace
}  // namespace leasehold::drill

LEASEHOLD_DRILL_RESOURCE_MODULE(leasehold::drill::open_it)
