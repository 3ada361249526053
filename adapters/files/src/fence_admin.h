#pragma once

#include <memory>

#include "leasehold/fence_admin.h"
#include "leasehold/files/fence.h"
#include "leasehold/url.h"

namespace leasehold::files {

// Path and options of a file: URL; fails with `invalid`.
struct FileUrl {
  std::filesystem::path path;
  FenceOptions options;

  [[nodiscard]] static Result<FileUrl> of(const Url& url);
};

[[nodiscard]] Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url);

}  // namespace leasehold::files
