#include "fence/stored_mark.h"

#include <optional>
#include <utility>

namespace leasehold::fence {
namespace {

Error damaged(std::string_view resource) {
  const std::string shown =
      detail::check_name("resource name", resource)
          ? std::string(resource)
          : "X'" +
                detail::to_hex(
                    {reinterpret_cast<const std::uint8_t*>(resource.data()), resource.size()}) +
                "'";
  return Error(ErrorCode::unavailable,
               "the mark of resource '" + shown + "' is damaged: it was not written by the fence");
}

}  // namespace

Result<FenceMark> read(const StoredMark& stored) {
  auto resource = ResourceName::parse(stored.resource);
  if (!resource) return fail(damaged(stored.resource));
  FenceMark found{std::move(*resource), std::nullopt, std::nullopt, stored.refused, std::nullopt};
  if (stored.claim) {
    found.claim = RequestId::from_hex(*stored.claim);
    if (!found.claim) return fail(damaged(stored.resource));
  }
  if (!stored.lineage) return found;
  auto lineage = Lineage::parse(*stored.lineage);
  if (!lineage) return fail(damaged(stored.resource));
  found.lineage = *lineage;
  const auto token_of = [&](std::int64_t number, std::optional<std::string_view> request) {
    auto its_number = TokenNumber::of(number);
    auto its_request = RequestId::from_hex(request.value_or(""));
    return its_number && its_request ? std::optional(Token{*its_number, *lineage, *its_request})
                                     : std::nullopt;
  };
  if (stored.token) found.mark = token_of(*stored.token, stored.request);
  if (stored.read_token) found.reader = token_of(*stored.read_token, stored.read_request);
  const bool whole = found.mark.has_value() == stored.token.has_value() &&
                     found.reader.has_value() == stored.read_token.has_value();
  if (!whole) return fail(damaged(stored.resource));
  return found;
}

}  // namespace leasehold::fence
