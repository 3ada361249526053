// Idempotency keys: what every Once takes and gives, whatever stores the results.
#pragma once

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "leasehold/error.h"
#include "leasehold/name.h"
#include "leasehold/time.h"

namespace leasehold {

inline constexpr std::size_t kMaxOnceParameters = 64 * 1024;  // bytes
inline constexpr std::size_t kMaxOnceResult = 1024 * 1024;    // bytes

struct OnceOptions {
  // How long to wait for somebody else, who may be at work under the same key. 0: not at all, the
  // answer is `busy`.
  Millis wait{5000};
  std::stop_token stop{};
};

struct OnceResult {
  std::string result;
  bool replayed = false;  // true: the work ran earlier, and this is what it returned then
};

namespace detail {

// The key, if it and the parameters may be used; else `invalid`.
[[nodiscard]] Result<OnceKey> check_once(std::string_view key, std::string_view parameters);
[[nodiscard]] Status check_once_result(std::string_view result);
// The idempotency key of the message number `number` that a work under this key sends; nothing if
// that would be too long.
std::optional<std::string> message_key(std::string_view key, int number);
// `invalid`: the key was used before, with other parameters.
Error other_parameters(const OnceKey& key);

}  // namespace detail
}  // namespace leasehold
