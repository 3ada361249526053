#include "place.h"

#include <climits>

#include "kit/try.h"

namespace leasehold::files {
namespace {

Status check_parts(const std::filesystem::path& path) {
  for (const std::filesystem::path& part : path) {
    TRY(detail::check_name("a part of the path", part.native()));
  }
  return {};
}

std::string without_slashes_at_the_end(std::string text) {
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

tl::unexpected<Error> no_resource(const std::string& name) {
  return fail(ErrorCode::invalid, "'" + name + "' is not the name of a file or folder of your own");
}

}  // namespace

Result<Place> Place::parse(const std::filesystem::path& path) {
  if (path.empty()) return fail(ErrorCode::invalid, "the path of the file or folder is empty");
  std::error_code no_folder;
  const std::filesystem::path whole = std::filesystem::absolute(path, no_folder);
  if (no_folder) {
    return fail(ErrorCode::unavailable, "the current folder is gone", no_folder.message());
  }
  if (whole.native().size() >= PATH_MAX) {
    return fail(ErrorCode::invalid, "the path has " + std::to_string(whole.native().size()) +
                                        " bytes; at most " + std::to_string(PATH_MAX - 1) +
                                        " are allowed");
  }
  const std::filesystem::path full = without_slashes_at_the_end(whole.native());
  TRY(check_parts(full));
  const std::string name = full.filename().native();
  if (name.empty() || name == "." || name == ".." || name == kHidden) return no_resource(name);
  if (name.size() > NAME_MAX) {
    return fail(ErrorCode::invalid, "the file's name has " + std::to_string(name.size()) +
                                        " bytes; at most 255 are allowed");
  }
  auto checked = TRY(ResourceName::parse(name));
  return Place{full, full.parent_path(), std::move(checked)};
}

}  // namespace leasehold::files
