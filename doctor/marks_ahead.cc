#include "doctor/marks_ahead.h"

#include <algorithm>
#include <map>
#include <utility>

#include "kit/text/visible_text.h"
#include "kit/try.h"

namespace leasehold::doctor {
namespace {

bool is_above(const StoreId& store, std::int64_t number, const LockStatus& lock) {
  return lock.store == store && lock.counted_to && number > *lock.counted_to;
}

Result<LockStatus> look_at(Client& store, const LockName& lock, const CallContext& context) {
  const auto left = std::chrono::floor<Millis>(context.deadline - BootClock::now());
  if (left <= Millis(0)) return fail(ErrorCode::timeout, "the time was over");
  return store.inspect(lock, {.store_timeout = left, .stop = context.stop});
}

// All locks of a store draw from one counter: any of them tells how far that is.
const LockName& any_lock() {
  static const LockName name = LockName::parse("leasehold").value();
  return name;
}

}  // namespace

bool FenceMemory::knows(const StoreId& store) const {
  return std::any_of(marks.begin(), marks.end(),
                     [&](const FenceMark& it) {
                       return it.highest() && it.highest()->lineage.store == store;
                     }) ||
         std::any_of(floors.begin(), floors.end(),
                     [&](const FenceFloor& it) { return it.store == store; });
}

bool FenceMemory::is_empty() const {
  return floors.empty() && std::none_of(marks.begin(), marks.end(), [](const FenceMark& it) {
           return it.highest().has_value();
         });
}

std::string MarkAhead::sentence() const {
  const std::string seen = resource ? "Resource " + kit::in_quotes(resource->str()) + " has seen"
                                    : "Swept marks were of";
  return seen + " token " + std::to_string(number) + " of " + of +
         ", and the store has not counted beyond " + std::to_string(counted_to) + ".";
}

Result<std::vector<MarkAhead>> marks_ahead(Client& store, const FenceMemory& memory,
                                           const CallContext& context) {
  std::map<LockName, LockStatus> asked;
  std::vector<MarkAhead> ahead;
  for (const FenceMark& it : memory.marks) {
    const auto& seen = it.highest();
    if (!seen) continue;
    const LockName& name = seen->lineage.lock;
    auto known = asked.find(name);
    if (known == asked.end()) {
      auto lock = TRY(look_at(store, name, context));
      known = asked.emplace(name, std::move(lock)).first;
    }
    const LockStatus& lock = known->second;
    const std::int64_t number = seen->number.value();
    if (!is_above(seen->lineage.store, number, lock)) continue;
    ahead.push_back({it.resource, number, "lineage " + seen->lineage.str(), *lock.counted_to});
  }
  if (memory.floors.empty()) return ahead;
  const auto lock =
      asked.empty() ? TRY(look_at(store, any_lock(), context)) : asked.begin()->second;
  for (const FenceFloor& it : memory.floors) {
    if (!is_above(it.store, it.floor, lock)) continue;
    ahead.push_back({std::nullopt, it.floor, "store " + it.store.hex(), *lock.counted_to});
  }
  return ahead;
}

}  // namespace leasehold::doctor
