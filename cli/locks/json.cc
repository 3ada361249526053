#include "cli/locks/json.h"

#include "cli/command/json.h"

namespace leasehold::cli {
namespace {

Json holder_of(const LockStatus::Holder& holder) {
  const auto known = [&](auto value) { return holder.foreign ? Json(nullptr) : Json(value); };
  return {{"owner", holder.owner},
          {"request", holder.request.hex()},
          {"token", known(holder.token.value())},
          {"held_ms", known(holder.held_for.count())},
          {"remaining_ms", known(holder.remaining.count())},
          {"foreign", holder.foreign}};
}

Json lock_of(const LockStatus& lock) {
  Json waiters = Json::array();
  for (const WaiterStatus& waiter : lock.waiters) {
    waiters.push_back({{"owner", waiter.owner}, {"request", waiter.request.hex()}});
  }
  return {{"name", lock.lock.str()},
          {"state", state_of(lock)},
          {"holder", lock.holder ? holder_of(*lock.holder) : Json(nullptr)},
          {"last_token", lock.last_token ? Json(lock.last_token->value()) : Json(nullptr)},
          {"lineage", lock.store ? Json(Lineage{*lock.store, lock.lock}.str()) : Json(nullptr)},
          {"waiters", waiters},
          {"known_as", lock.known_as.empty() ? Json(nullptr) : Json(lock.known_as)}};
}

Json store_of(const std::optional<StoreTraits>& store) {
  if (!store) return nullptr;
  return {{"address", store->address},
          {"guarantee", std::string(to_string(store->guarantee))},
          {"why", store->why},
          {"instead", store->instead}};
}

}  // namespace

std::string state_of(const LockStatus& lock) {
  if (!lock.holder) return "free";
  return lock.holder->kept ? "kept" : "held";
}

std::string locks_json(const std::optional<StoreTraits>& store,
                       const std::vector<LockStatus>& locks) {
  Json list = Json::array();
  for (const LockStatus& lock : locks) list.push_back(lock_of(lock));
  return json_text({{"store", store_of(store)}, {"locks", list}});
}

std::string lock_json(const std::optional<StoreTraits>& store, const LockStatus& lock) {
  return json_text({{"store", store_of(store)}, {"lock", lock_of(lock)}});
}

}  // namespace leasehold::cli
