// Which filesystems have locks that one kernel decides.
#pragma once

#include <cstdint>
#include <string>

#include "leasehold/error.h"

namespace leasehold::kit {

enum class FilesystemClass { local, network, unknown };

struct FilesystemKind {
  FilesystemClass what = FilesystemClass::unknown;
  std::string name;
  bool in_memory = false;  // empty after a reboot
};

// By the magic number of statfs(2).
FilesystemKind filesystem_of(std::uint64_t magic);

// `unavailable` if nothing is at the path, or it may not be looked at.
[[nodiscard]] Result<FilesystemKind> filesystem_at(const std::string& path);

}  // namespace leasehold::kit
