#include "kit/system/filesystem_kind.h"

#include <sys/statfs.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <system_error>

namespace leasehold::kit {
namespace {

using enum FilesystemClass;

struct Known {
  std::uint64_t magic;
  FilesystemClass what;
  const char* name;
  bool in_memory = false;
};

// As in statfs(2) and linux/magic.h; written out, since old headers miss some.
constexpr Known kKnown[] = {
    {0xEF53, local, "ext4"},
    {0x58465342, local, "xfs"},
    {0x9123683E, local, "btrfs"},
    {0xF2F52010, local, "f2fs"},
    {0x2FC12FC1, local, "zfs"},
    {0xCA451A4E, local, "bcachefs"},
    {0x3153464A, local, "jfs"},
    {0x01021994, local, "tmpfs", true},
    {0x858458F6, local, "ramfs", true},
    {0x794C7630, local, "overlayfs"},
    {0x6969, network, "NFS"},
    {0x517B, network, "SMB"},
    {0xFF534D42, network, "CIFS"},
    {0xFE534D42, network, "SMB2"},
    {0x01021997, network, "9p"},
    {0x00C36400, network, "Ceph"},
    {0x0BD00BD0, network, "Lustre"},
    {0x47504653, network, "GPFS"},
    {0x5346414F, network, "AFS"},
    {0x6B414653, network, "AFS"},
    {0x73757245, network, "Coda"},
    {0x01161970, network, "GFS2"},
    {0x7461636F, network, "OCFS2"},
    {0x564C, network, "NCP"},
    {0xAAD7AAEA, network, "Panasas"},
    {0x19830326, network, "BeeGFS"},
    {0x20030528, network, "OrangeFS"},
    {0x786F4256, network, "a VirtualBox shared folder"},
    {0xBACBACBC, network, "a VMware shared folder"},
    {0x65735546, unknown, "FUSE"},
};

std::string in_hex(std::uint64_t magic) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), digits[magic % 16]);
    magic /= 16;
  } while (magic != 0);
  return "0x" + text;
}

}  // namespace

FilesystemKind filesystem_of(std::uint64_t magic) {
  magic &= 0xffffffff;  // 32-bit kernels sign-extend
  const auto* found = std::find_if(std::begin(kKnown), std::end(kKnown),
                                   [&](const Known& known) { return known.magic == magic; });
  if (found == std::end(kKnown)) return {unknown, "a filesystem of type " + in_hex(magic), false};
  return {found->what, found->name, found->in_memory};
}

Result<FilesystemKind> filesystem_at(const std::string& path) {
  struct statfs there {};
  if (statfs(path.c_str(), &there) == 0) {
    return filesystem_of(static_cast<std::uint64_t>(there.f_type));
  }
  return fail(ErrorCode::unavailable, "the filesystem of " + path + " cannot be told",
              std::generic_category().message(errno));
}

}  // namespace leasehold::kit
