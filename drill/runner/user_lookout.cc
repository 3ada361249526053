#include "user_lookout.h"

#include <algorithm>
#include <thread>

#include "kit/try.h"
#include "leasehold/process/child.h"
#include "leasehold/registry.h"
#include "leasehold/url.h"

namespace leasehold::drill {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongestWatch = 20s;
constexpr int kWatchTries = 10;
constexpr auto kBetweenTries = 100ms;

}  // namespace

Result<Lookout> Lookout::open(const UserPlan& plan, const std::string& store) {
  auto lock = TRY(LockName::parse(plan.lock));
  auto client = TRY(connect(store));
  Lookout it(std::move(client), std::move(lock));
  it.watch_ = plan.watch;
  it.environment_ = {{"LEASEHOLD_STORE", it.client_.store().address},
                     {"LEASEHOLD_LOCK", it.lock_.str()},
                     {"LEASEHOLD_TTL", std::to_string(plan.ttl.count()) + "ms"},
                     {"LEASEHOLD_FENCE", std::nullopt},
                     // Of a `leasehold run` around the drill: they belong to another lock.
                     {"LEASEHOLD_REQUEST", std::nullopt},
                     {"LEASEHOLD_SLOT", std::nullopt},
                     {"LEASEHOLD_TOKEN", std::nullopt},
                     {"LEASEHOLD_LINEAGE", std::nullopt}};
  if (!plan.fence) return it;
  auto fence = TRY(Registry::standard().open<FenceAdmin>(*plan.fence));
  it.fence_ = std::move(fence);
  const auto url = TRY(Url::parse(*plan.fence));
  it.environment_.emplace_back("LEASEHOLD_FENCE", url.redacted());
  auto marks = TRY(it.fence_->marks());
  it.marks_ = std::move(marks);
  return it;
}

Result<LockStatus> Lookout::look_at_lock() {
  auto status = client_.inspect(lock_);
  if (status) std::erase_if(status->holders, [](const auto& holder) { return holder.kept; });
  return status;
}

Result<std::string> Lookout::look_at_resource() const {
  std::string how;
  for (int tries = 0; tries < kWatchTries; ++tries) {
    auto child = process::Child::start({.argv = {"sh", "-c", watch_},
                                        .environment = environment_,
                                        .in = process::Null{},
                                        .out = process::Piped{},
                                        .placement = process::Placement::own_group});
    if (!child) return fail(ErrorCode::invalid, child.error().message);
    std::string out = process::read_all(child->out().get(), process::within(kLongestWatch));
    const auto status = child->wait_for(kLongestWatch);
    if (status && status->success()) return out;
    how = status ? status->describe() : "does not end";
    std::this_thread::sleep_for(kBetweenTries);
  }
  return fail(ErrorCode::invalid, "the command of --watch " + how + ": " + watch_);
}

Result<bool> Lookout::nobody_entered() {
  if (!fence_) return false;
  const auto marks = TRY(fence_->marks());
  const auto is_as_before = [](const FenceMark& now, const FenceMark& before) {
    return now.resource == before.resource && now.mark == before.mark && now.claim == before.claim;
  };
  return std::equal(marks.begin(), marks.end(), marks_.begin(), marks_.end(), is_as_before);
}

Result<std::optional<std::int64_t>> Lookout::look_at_fence() {
  if (!fence_) return std::nullopt;
  const auto marks = TRY(fence_->marks());
  std::int64_t refused = 0;
  for (const FenceMark& mark : marks) refused += mark.refused;
  return refused;
}

}  // namespace leasehold::drill
