// What the tests of the file fence share: holders that write, tokens, plain reading.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "kit/system/fd.h"
#include "kit/try.h"
#include "leasehold/error.h"
#include "leasehold/files/fence.h"
#include "leasehold/token.h"
#include "rig/temp_folder.h"
#include "testing/results.h"
#include "testing/tokens.h"

namespace leasehold::files {

using kit::Fd;

// As any program reads it, past the fence.
inline Result<std::string> read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::unavailable, "cannot read " + path.native());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.native());
}

// One holder's visit: adds its number to a list.
inline Status append(const std::filesystem::path& path, std::int64_t number, char request,
                     FenceOptions options = {}) {
  const auto fence = TRY(Fence::open(path, options));
  return fence.update(leasehold::testing::token_of(number, request),
                      [&](std::string list) { return list + std::to_string(number) + ","; });
}

// Another one's: a folder whose page has its number.
inline constexpr const char* kPage = "sub/page";
inline Status replace_folder(const std::filesystem::path& path, std::int64_t number, char request) {
  const auto fence = TRY(Fence::open(path));
  auto next = TRY(fence.stage());
  std::filesystem::create_directory(next.path() / "sub");
  write_text(next.path() / kPage, std::to_string(number));
  return next.publish(leasehold::testing::token_of(number, request));
}

// 0: nobody has entered.
inline std::int64_t mark_of(const std::filesystem::path& path) {
  const auto fence = Fence::open(path);
  const auto mark = fence ? fence->mark() : fail(fence.error());
  EXPECT_TRUE(leasehold::testing::good(mark));
  return mark && mark->mark ? mark->mark->number.value() : 0;
}

using leasehold::testing::bad;
using leasehold::testing::good;
using leasehold::testing::lineage_of;
using leasehold::testing::token_of;

}  // namespace leasehold::files
