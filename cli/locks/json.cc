#include "cli/locks/json.h"

#include "cli/command/duration.h"
#include "cli/command/json.h"
#include "cli/command/wall_time.h"

namespace leasehold::cli {
namespace {

bool is_endless(const LockStatus::Holder& holder) {
  return holder.foreign && holder.foreign_end == LockStatus::Holder::End::never;
}

Json holder_of(const LockStatus::Holder& holder) {
  const auto now = std::chrono::system_clock::now();
  const auto known = [&](auto value) { return holder.foreign ? Json(nullptr) : Json(value); };
  const auto timed = [&](auto value) {
    return tells_remaining(holder) ? Json(value) : Json(nullptr);
  };
  return {{"owner", holder.owner},
          {"request", holder.request.hex()},
          {"token", known(holder.token.value())},
          {"held_ms", known(holder.held_for.count())},
          {"held_since", known(rfc3339(now - holder.held_for))},
          {"remaining_ms", timed(holder.remaining.count())},
          {"lasts_until", timed(rfc3339(now + holder.remaining))},
          {"endless", is_endless(holder)},
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

bool tells_remaining(const LockStatus::Holder& holder) {
  return !holder.foreign || holder.foreign_end == LockStatus::Holder::End::timed;
}

std::optional<std::string> remaining_of(const LockStatus::Holder& holder) {
  if (is_endless(holder)) return "no end";
  if (!tells_remaining(holder)) return std::nullopt;
  return (holder.at_most ? "at most " : "") + format_duration(holder.remaining);
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
