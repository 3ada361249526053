// A mark as a table keeps it: texts and numbers that somebody else may have written.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "leasehold/error.h"
#include "leasehold/fence_admin.h"

namespace leasehold::fence {

struct StoredMark {
  std::string_view resource;
  std::optional<std::string_view> lineage;
  std::optional<std::int64_t> token;
  std::optional<std::string_view> request;
  std::int64_t refused = 0;
  std::optional<std::string_view> claim;
  std::optional<std::int64_t> read_token = {};
  std::optional<std::string_view> read_request = {};
};

// `unavailable` if it was not written by a fence.
[[nodiscard]] Result<FenceMark> read(const StoredMark& stored);

}  // namespace leasehold::fence
