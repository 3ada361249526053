// What has to be so before a store is asked what was done once.
#pragma once

#include <string>

#include "client_core.h"
#include "kit/try.h"
#include "leasehold/name.h"

namespace leasehold::detail {

inline Status check_records(ClientCore& core) {
  if (core.store().once_records() != nullptr) return {};
  return fail(
      error_at(core.traits().address,
               Error(ErrorCode::unsupported, "this store does not remember what was done once")));
}

inline Status check_records_under(ClientCore& core, const std::string& key) {
  TRY(OnceKey::parse(key));
  return check_records(core);
}

}  // namespace leasehold::detail
