// The names of everything that is kept in Redis.
#pragma once

#include <string>
#include <string_view>

#include "kit/text/visible_text.h"
#include "leasehold/error.h"
#include "leasehold/id.h"
#include "leasehold/name.h"

namespace leasehold::redis {

// Every key but that of the lock itself begins so, then has a word, a colon, and the lock's key.
inline constexpr std::string_view kOwnKeys = "leasehold:";

inline constexpr const char* kStoreKey = "leasehold:store";
inline constexpr const char* kTokenKey = "leasehold:token";  // the counter of all locks
inline constexpr std::string_view kQueueKeys = "leasehold:queue:";
inline constexpr std::string_view kPermitsKeys = "leasehold:permits:";
inline constexpr std::string_view kFenceKeys = "leasehold:fence:";

// How everything here is kept. The value of kStoreKey begins with it, then has a space and the id.
inline constexpr std::string_view kStoreFormat = "4";

struct LockKeys {
  explicit LockKeys(std::string lock_key) : lock(std::move(lock_key)) {}
  static LockKeys of(const std::string& prefix, const LockName& name) {
    return LockKeys(prefix + name.str());
  }
  // `invalid` if it could be mistaken for a key of another kind.
  [[nodiscard]] static Result<LockKeys> usable_of(const std::string& prefix, const LockName& name) {
    LockKeys keys = of(prefix, name);
    if (keys.usable()) return keys;
    return fail(ErrorCode::invalid, "lock " + kit::in_quotes(name.str()) +
                                        " would be a key that begins with '" +
                                        std::string(kOwnKeys) + "'; such keys are Leasehold's own");
  }

  bool usable() const { return !lock.starts_with(kOwnKeys); }

  std::string lock;
  std::string queue() const { return std::string(kQueueKeys) + lock; }
  std::string waiters() const { return "leasehold:waiters:" + lock; }
  std::string permits() const { return std::string(kPermitsKeys) + lock; }
  std::string ends() const { return "leasehold:ends:" + lock; }
  std::string holders() const { return "leasehold:holders:" + lock; }
  std::string slots() const { return "leasehold:slots:" + lock; }
  std::string once() const { return "leasehold:once:" + lock; }
};

// The hash that is the mark of a resource. A hash tag in the resource's name is one in the key,
// too.
inline std::string fence_key(const ResourceName& resource) {
  return std::string(kFenceKeys) + resource.str();
}

// Says that the calls of a request up to a number are over, for one that may still be on its way.
inline std::string released_key(const RequestId& request) {
  return "leasehold:released:" + request.hex();
}

}  // namespace leasehold::redis
