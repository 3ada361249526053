#include "doctor/marks_ahead.h"

#include <algorithm>
#include <map>
#include <utility>

#include "kit/text/visible_text.h"
#include "kit/try.h"

namespace leasehold::doctor {
namespace {

bool is_above(const Token& mark, const LockStatus& lock) {
  return lock.store == mark.lineage.store && lock.counted_to &&
         mark.number.value() > *lock.counted_to;
}

Result<LockStatus> look_at(Client& store, const LockName& lock, const CallContext& context) {
  const auto left = std::chrono::floor<Millis>(context.deadline - BootClock::now());
  if (left <= Millis(0)) return fail(ErrorCode::timeout, "the time was over");
  return store.inspect(lock, {.store_timeout = left, .stop = context.stop});
}

}  // namespace

std::string MarkAhead::sentence() const {
  return "Resource " + kit::in_quotes(resource.str()) + " has seen token " +
         std::to_string(mark.number.value()) + " of lineage " + mark.lineage.str() +
         ", and the store has not counted beyond " + std::to_string(counted_to) + ".";
}

Result<std::vector<MarkAhead>> marks_ahead(Client& store, const std::vector<FenceMark>& marks,
                                           const CallContext& context) {
  std::map<LockName, LockStatus> asked;
  std::vector<MarkAhead> ahead;
  for (const FenceMark& it : marks) {
    const auto& seen = it.highest();
    if (!seen) continue;
    const LockName& name = seen->lineage.lock;
    auto known = asked.find(name);
    if (known == asked.end()) {
      auto lock = TRY(look_at(store, name, context));
      known = asked.emplace(name, std::move(lock)).first;
    }
    const LockStatus& lock = known->second;
    if (is_above(*seen, lock)) ahead.push_back({it.resource, *seen, *lock.counted_to});
  }
  return ahead;
}

bool has_entered(const std::vector<FenceMark>& marks, const StoreId& store) {
  return std::any_of(marks.begin(), marks.end(), [&](const FenceMark& it) {
    return it.highest() && it.highest()->lineage.store == store;
  });
}

}  // namespace leasehold::doctor
