#include "filesystem_kind.h"

#include <gmock/gmock.h>
#include <linux/magic.h>

namespace leasehold::files {
namespace {

using ::testing::HasSubstr;
using enum FilesystemClass;

Status check(std::uint64_t magic, Filesystem allowed = Filesystem::known_local) {
  return check_filesystem("/srv/data", magic, allowed);
}

TEST(FilesystemKindTest, LocalOnesAreAllowed) {
  for (const std::uint64_t magic :
       {std::uint64_t{EXT4_SUPER_MAGIC}, std::uint64_t{XFS_SUPER_MAGIC},
        std::uint64_t{BTRFS_SUPER_MAGIC}, std::uint64_t{TMPFS_MAGIC},
        std::uint64_t{OVERLAYFS_SUPER_MAGIC}, std::uint64_t{F2FS_SUPER_MAGIC},
        std::uint64_t{RAMFS_MAGIC}, std::uint64_t{0x2FC12FC1}, std::uint64_t{0xCA451A4E}}) {
    EXPECT_TRUE(check(magic)) << std::hex << magic;
  }
}

TEST(FilesystemKindTest, NetworkOnesAreRefusedWithTheReasonWhateverTheCallerSays) {
  for (const std::uint64_t magic :
       {std::uint64_t{NFS_SUPER_MAGIC}, std::uint64_t{SMB_SUPER_MAGIC},
        std::uint64_t{CIFS_SUPER_MAGIC}, std::uint64_t{SMB2_SUPER_MAGIC}, std::uint64_t{V9FS_MAGIC},
        std::uint64_t{CEPH_SUPER_MAGIC}, std::uint64_t{AFS_SUPER_MAGIC},
        std::uint64_t{AFS_FS_MAGIC}, std::uint64_t{CODA_SUPER_MAGIC},
        std::uint64_t{OCFS2_SUPER_MAGIC}, std::uint64_t{0x0BD00BD0}, std::uint64_t{0x47504653},
        std::uint64_t{0x01161970}, std::uint64_t{0x19830326}}) {
    for (const Filesystem allowed : {Filesystem::known_local, Filesystem::vouched_for}) {
      const auto refused = check(magic, allowed);
      ASSERT_FALSE(refused) << std::hex << magic;
      EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
      EXPECT_THAT(refused.error().message, HasSubstr("/srv/data"));
      EXPECT_THAT(refused.error().message, HasSubstr("leases themselves"));
    }
  }
  EXPECT_THAT(check(NFS_SUPER_MAGIC).error().message, HasSubstr("NFS"));
}

TEST(FilesystemKindTest, UnknownOnesNeedSomebodyToVouchForThem) {
  for (const std::uint64_t magic : {std::uint64_t{FUSE_SUPER_MAGIC}, std::uint64_t{0x12345678}}) {
    const auto refused = check(magic);
    ASSERT_FALSE(refused) << std::hex << magic;
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
    EXPECT_THAT(refused.error().message, HasSubstr("?filesystem=local"));
    EXPECT_TRUE(check(magic, Filesystem::vouched_for));
  }
  EXPECT_THAT(check(FUSE_SUPER_MAGIC).error().message, HasSubstr("FUSE"));
  EXPECT_THAT(check(0x12345678).error().message, HasSubstr("0x12345678"));
}

TEST(FilesystemKindTest, SignExtendedNumbersAreTheSame) {
  EXPECT_EQ(filesystem_of(0xFFFFFFFFFF534D42).what, network);
  EXPECT_EQ(filesystem_of(0xFFFFFFFF9123683E).what, local);
}

}  // namespace
}  // namespace leasehold::files
