// Which filesystems have locks that one kernel decides.
#pragma once

#include <cstdint>
#include <string>

#include "leasehold/error.h"
#include "leasehold/files/fence.h"

namespace leasehold::files {

enum class FilesystemClass { local, network, unknown };

struct FilesystemKind {
  FilesystemClass what = FilesystemClass::unknown;
  std::string name;
};

// By the magic number of statfs(2).
FilesystemKind filesystem_of(std::uint64_t magic);

// `unsupported`, with the reason, unless a fence may stand there.
[[nodiscard]] Status check_filesystem(const std::string& path, std::uint64_t magic,
                                      Filesystem allowed);

}  // namespace leasehold::files
