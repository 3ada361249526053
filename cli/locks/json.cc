#include "cli/locks/json.h"

#include <algorithm>

#include "cli/command/duration.h"
#include "cli/command/json.h"
#include "cli/command/wall_time.h"

namespace leasehold::cli {
namespace {

bool is_endless(const LockStatus::Holder& holder) {
  return holder.foreign && holder.foreign_end == LockStatus::Holder::End::never;
}

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

std::string mode_of(Mode mode) {
  return mode.is_permit() ? "permit" : to_string(mode);
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
          {"foreign", holder.foreign},
          {"mode", mode_of(holder.mode)},
          {"permits", holder.mode.is_permit() ? Json(holder.mode.permits()) : Json(nullptr)},
          {"slot", holder.slot ? Json(holder.slot->number) : Json(nullptr)},
          {"note", or_null(holder.note)}};
}

Json lock_of(const LockStatus& lock) {
  Json holders = Json::array();
  for (const LockStatus::Holder& holder : lock.holders) holders.push_back(holder_of(holder));
  Json waiters = Json::array();
  for (const WaiterStatus& waiter : lock.waiters) {
    waiters.push_back({{"owner", waiter.owner},
                       {"request", waiter.request.hex()},
                       {"mode", mode_of(waiter.mode)},
                       {"note", or_null(waiter.note)}});
  }
  return {{"name", lock.lock.str()},
          {"state", state_of(lock)},
          {"holder", holders.empty() ? Json(nullptr) : holders.front()},
          {"holders", holders},
          {"permits", lock.set_permits ? Json(*lock.set_permits) : Json(nullptr)},
          {"last_token", lock.last_token ? Json(lock.last_token->value()) : Json(nullptr)},
          {"lineage", lock.store ? Json(Lineage{*lock.store, lock.lock}.str()) : Json(nullptr)},
          {"waiters", waiters},
          {"known_as", or_null(lock.known_as)}};
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
  if (lock.holders.empty()) return "free";
  const bool kept = std::ranges::all_of(lock.holders, [](const auto& it) { return it.kept; });
  return kept ? "kept" : "held";
}

std::optional<std::string> use_of(const LockStatus& lock) {
  const std::string count = std::to_string(lock.holders.size());
  const bool has_permits = !lock.holders.empty() && lock.holders.front().mode.is_permit();
  if (lock.set_permits) return count + " of " + std::to_string(*lock.set_permits);
  if (has_permits) return count + " of " + std::to_string(lock.holders.front().mode.permits());
  if (lock.holders.empty() || lock.holders.front().mode.is_exclusive()) return std::nullopt;
  return "shared by " + count;
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

std::string seen_json(const LockStatus& lock) {
  return json_line({{"event", "seen"},
                    {"time", rfc3339(std::chrono::system_clock::now())},
                    {"lock", lock_of(lock)}});
}

std::string unseen_json(const std::string& why) {
  return json_line(
      {{"event", "unseen"}, {"time", rfc3339(std::chrono::system_clock::now())}, {"message", why}});
}

}  // namespace leasehold::cli
