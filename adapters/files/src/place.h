// The path of a fenced file or folder, checked once.
#pragma once

#include <filesystem>
#include <string>

#include "leasehold/error.h"
#include "leasehold/name.h"

namespace leasehold::files {

// Holds the versions of all fenced things of one folder, each in a folder of the thing's name. So a
// name may be as long as the filesystem allows, and nothing else appears beside the data.
inline constexpr const char* kHidden = ".leasehold";

struct Place {
  std::filesystem::path path;    // absolute, without a slash at the end
  std::filesystem::path folder;  // the one it is in
  ResourceName name;             // its last part

  [[nodiscard]] static Result<Place> parse(const std::filesystem::path& path);

  std::filesystem::path vault() const { return folder / kHidden / name.str(); }
};

}  // namespace leasehold::files
