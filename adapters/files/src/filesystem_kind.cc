#include "filesystem_kind.h"

namespace leasehold::files {

using enum FilesystemClass;

Status check_filesystem(const std::string& path, std::uint64_t magic, Filesystem allowed) {
  const FilesystemKind kind = filesystem_of(magic);
  if (kind.what == local) return {};
  if (kind.what == network) {
    return fail(ErrorCode::unsupported,
                path + " is on " + kind.name +
                    ", a filesystem of a network. Its file locks are leases themselves: they can "
                    "end under a writer that is frozen, and then two write at once. Fence a file "
                    "on a local disk, or keep the data in a database with a fence");
  }
  if (allowed == Filesystem::vouched_for) return {};
  return fail(
      ErrorCode::unsupported,
      path + " is on " + kind.name +
          ", which is not known to be local, and a fence needs locks that one kernel "
          "decides. If this machine alone mounts it, vouch for it with ?filesystem=local in "
          "the URL or Filesystem::vouched_for");
}

}  // namespace leasehold::files
