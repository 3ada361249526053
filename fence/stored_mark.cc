#include "fence/stored_mark.h"

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
  if (!stored.token) return found;
  auto number = TokenNumber::of(*stored.token);
  auto request = RequestId::from_hex(stored.request.value_or(""));
  if (!number || !request) return fail(damaged(stored.resource));
  found.mark = Token{*number, std::move(*lineage), *request};
  return found;
}

}  // namespace leasehold::fence
