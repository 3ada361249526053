// A cache in this process's memory, whose values grow old by the boot clock. Thread safe.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "kit/threads/thread_safety.h"
#include "leasehold/single_flight.h"

namespace leasehold::testing {

class ValuesInMemory final : public ValueCache {
 public:
  Result<std::optional<CachedValue>> get(const std::string& key) override {
    const MutexLock lock(mutex_);
    const auto found = values_.find(key);
    if (found == values_.end()) return std::nullopt;
    CachedValue value = found->second.value;
    value.fresh_for = std::chrono::ceil<Millis>(found->second.until - BootClock::now());
    return value;
  }
  Status put(const std::string& key, const CachedValue& value) override {
    const MutexLock lock(mutex_);
    values_.insert_or_assign(key, Kept{value, BootClock::now() + value.fresh_for});
    return {};
  }

 private:
  struct Kept {
    CachedValue value;
    BootTime until;
  };
  Mutex mutex_;
  std::map<std::string, Kept> values_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::testing
