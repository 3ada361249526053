#include "kit/system/file_content.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace leasehold::kit {
namespace {

constexpr std::uintmax_t kMost = 1 << 20;

tl::unexpected<Error> unusable(std::string why) {
  return fail(ErrorCode::invalid, std::move(why));
}

}  // namespace

Result<std::string> content_of_file(const std::string& path) {
  std::error_code unknown;
  const auto kind = std::filesystem::status(path, unknown);
  if (!unknown && std::filesystem::exists(kind) && !std::filesystem::is_regular_file(kind)) {
    return unusable("is a folder, a pipe or a device, and no file");
  }
  const std::uintmax_t size = std::filesystem::file_size(path, unknown);
  if (!unknown && size > kMost) return unusable("is larger than a megabyte");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return unusable("cannot be read");
  std::ostringstream content;
  content << stream.rdbuf();
  if (content.bad()) return unusable("cannot be read");
  return content.str();
}

}  // namespace leasehold::kit
