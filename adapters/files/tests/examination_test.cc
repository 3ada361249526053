#include "examination.h"

#include "testing/findings.h"
#include "testing/in_child.h"
#include "visits.h"

namespace leasehold::files {
namespace {

using leasehold::testing::Finds;
using leasehold::testing::is_ok;

struct ExaminationTest : ::testing::Test {
  Result<Diagnosis> look(const std::filesystem::path& path) const {
    const Url url = Url::parse("file:" + path.string()).value();
    return examine(url, {ExaminedAs::fence, std::chrono::seconds(30), {BootTime::max(), {}}});
  }
  rig::TempFolder scratch;
};

TEST_F(ExaminationTest, ALocalFolderThatCanBeWrittenIsOk) {
  const auto found = look(scratch.path() / "file");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->findings, is_ok("files.permissions"));
  EXPECT_EQ(look(scratch.path() / "no/file").error().code, ErrorCode::unavailable);
}

TEST_F(ExaminationTest, AFilesystemInMemoryIsAWarning) {
  EXPECT_TRUE(leasehold::testing::in_own_mount(scratch.path(), "tmpfs", "size=1m", 0, [this] {
    const auto found = look(scratch.path() / "file");
    return ::testing::Matches(Finds("files.filesystem", Severity::warning, "tmpfs"))(
        found->findings);
  }));
}

TEST_F(ExaminationTest, AFolderThatMayNotBeWrittenIsADanger) {
  namespace fs = std::filesystem;
  fs::permissions(scratch.path(), fs::perms::owner_read | fs::perms::owner_exec |
                                      fs::perms::others_read | fs::perms::others_exec);
  EXPECT_TRUE(leasehold::testing::holds_without_privileges([this] {
    const auto found = look(scratch.path() / "file");
    return ::testing::Matches(Finds("files.permissions", Severity::danger, "may not write"))(
        found->findings);
  }));
  fs::permissions(scratch.path(), fs::perms::owner_all);
}

}  // namespace
}  // namespace leasehold::files
