#include "cli/command/json.h"

#include <nlohmann/json.hpp>

namespace leasehold::cli {
namespace {

using Json = nlohmann::ordered_json;

// A label that another program wrote may not be UTF-8: replaced, never an exception.
std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

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

Json mark_of(const FenceMark& mark) {
  return {{"resource", mark.resource.str()},
          {"token", mark.mark ? Json(mark.mark->number.value()) : Json(nullptr)},
          {"request", mark.mark ? Json(mark.mark->request.hex()) : Json(nullptr)},
          {"lineage", mark.lineage ? Json(mark.lineage->str()) : Json(nullptr)},
          {"refused", mark.refused},
          {"claim", mark.claim ? Json(mark.claim->hex()) : Json(nullptr)}};
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
  return text_of({{"store", store_of(store)}, {"locks", list}});
}

std::string lock_json(const std::optional<StoreTraits>& store, const LockStatus& lock) {
  return text_of({{"store", store_of(store)}, {"lock", lock_of(lock)}});
}

std::string fence_json(const std::vector<FenceMark>& marks, const std::vector<GuardedTable>& tables,
                       const std::vector<doctor::MarkAhead>& ahead) {
  Json above = Json::array();
  for (const doctor::MarkAhead& it : ahead) {
    above.push_back({{"resource", it.resource.str()}, {"counted_to", it.counted_to}});
  }
  Json list = Json::array();
  for (const FenceMark& mark : marks) list.push_back(mark_of(mark));
  Json guarded = Json::array();
  for (const GuardedTable& table : tables) {
    guarded.push_back(
        {{"table", table.table}, {"resource", table.resource.str()}, {"armed", table.armed}});
  }
  return text_of({{"fences", list}, {"tables", guarded}, {"ahead_of_store", above}});
}

std::string outbox_json(const OutboxStatus& status) {
  Json set_aside = Json::array();
  for (const OutboxProblem& problem : status.set_aside) {
    set_aside.push_back({{"id", problem.message.id},
                         {"key", problem.message.key},
                         {"topic", problem.message.topic},
                         {"idempotency_key", problem.message.idempotency_key},
                         {"attempts", problem.message.attempts},
                         {"last_error", problem.last_error},
                         {"behind", problem.behind}});
  }
  return text_of({{"waiting", status.waiting},
                  {"delivered", status.delivered},
                  {"skipped", status.skipped},
                  {"lag_ms", status.lag.count()},
                  {"set_aside", set_aside}});
}

}  // namespace leasehold::cli
