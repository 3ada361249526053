// Where a fence of files may stand.
#pragma once

#include <cstdint>
#include <string>

#include "kit/system/filesystem_kind.h"
#include "leasehold/error.h"
#include "leasehold/files/fence.h"

namespace leasehold::files {

using kit::filesystem_of;
using kit::FilesystemClass;
using kit::FilesystemKind;

// `unsupported`, with the reason, unless a fence may stand there.
[[nodiscard]] Status check_filesystem(const std::string& path, std::uint64_t magic,
                                      Filesystem allowed);

}  // namespace leasehold::files
