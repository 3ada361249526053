#include "leasehold/registry.h"

#include <map>

#include "leasehold/detail/thread_safety.h"

namespace leasehold {

struct Registry::State {
  mutable Mutex mutex;
  std::map<std::string, Adapter> adapters LEASEHOLD_GUARDED_BY(mutex);
};

Registry::Registry() : state_(std::make_unique<State>()) {}
Registry::~Registry() = default;

Registry& Registry::standard() {
  static Registry registry;
  return registry;
}

void Registry::add(Adapter adapter) {
  MutexLock lock(state_->mutex);
  std::string scheme = adapter.scheme;
  state_->adapters.insert_or_assign(std::move(scheme), std::move(adapter));
}

Result<Adapter> Registry::find(const std::string& scheme) const {
  MutexLock lock(state_->mutex);
  const auto found = state_->adapters.find(scheme);
  if (found != state_->adapters.end()) return found->second;
  std::string known;
  for (const auto& [name, adapter] : state_->adapters) known += (known.empty() ? "" : ", ") + name;
  return fail(ErrorCode::unsupported,
              "no store is known for the scheme '" + scheme + "'; this program has: " +
                  (known.empty() ? "none (was register_stores() called?)" : known));
}

}  // namespace leasehold
