#include "leasehold/once.h"

#include "kit/text/visible_text.h"
#include "kit/try.h"

namespace leasehold::detail {
namespace {

Status check_size(const char* what, std::size_t size, std::size_t limit) {
  if (size <= limit) return {};
  return fail(ErrorCode::invalid, std::string(what) + " has " + std::to_string(size) +
                                      " bytes; at most " + std::to_string(limit) + " are allowed");
}

}  // namespace

Result<OnceKey> check_once(std::string_view key, std::string_view parameters) {
  auto name = OnceKey::parse(key);
  if (!name) return name;
  TRY(check_size("the parameters", parameters.size(), kMaxOnceParameters));
  return name;
}

Status check_once_result(std::string_view result) {
  return check_size("the result", result.size(), kMaxOnceResult);
}

std::optional<std::string> message_key(std::string_view key, int number) {
  std::string name = std::string(key) + "#" + std::to_string(number);
  if (name.size() > kMaxNameBytes) return std::nullopt;
  return name;
}

Error other_parameters(const OnceKey& key) {
  return Error(ErrorCode::invalid, "idempotency key " + kit::in_quotes(key.str()) +
                                       " was used before with other parameters");
}

}  // namespace leasehold::detail
