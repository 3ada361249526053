// A fenced folder: replaced as a whole.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "leasehold/files/fence.h"
#include "visits.h"

namespace leasehold::files {
namespace {

using ::testing::HasSubstr;

class FolderFenceTest : public ::testing::Test {
 protected:
  FolderFenceTest() {
    std::filesystem::create_directories(path_ / "sub");
    write_text(path_ / "sub/page", "first");
    EXPECT_EQ(chmod(path_.c_str(), 0750), 0);
    EXPECT_TRUE(good(install_fence(path_)));
  }

  Fence fence() const { return Fence::open(path_).value(); }
  std::string page() const { return read_text(path_ / "sub/page").value_or("none"); }
  Status replace(const Token& token, const std::string& text, WriteOptions options = {}) const {
    auto next = fence().stage();
    if (!next) return fail(next.error());
    std::filesystem::create_directories(next->path() / "sub");
    write_text(next->path() / "sub/page", text);
    return next->publish(token, options);
  }

  rig::TempFolder scratch_;
  std::filesystem::path path_ = scratch_.path() / "site";
};

TEST_F(FolderFenceTest, IsReadByItsOrdinaryPath) {
  EXPECT_EQ(page(), "first");
  EXPECT_TRUE(std::filesystem::is_directory(path_));
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_TRUE(good(Fence::open(path_ / ""))) << "a slash at the end changes nothing";
}

TEST_F(FolderFenceTest, InstallingAgainChangesNothing) {
  ASSERT_TRUE(good(replace(token_of(33, '1'), "second")));
  EXPECT_TRUE(good(install_fence(path_)));
  EXPECT_EQ(page(), "second");
  EXPECT_EQ(fence().mark()->mark, token_of(33, '1'));
}

TEST_F(FolderFenceTest, IsReplacedAsAWholeAndKeepsItsMode) {
  ASSERT_TRUE(good(replace(token_of(33, '1'), "second")));
  EXPECT_EQ(page(), "second");
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0750u);
}

TEST_F(FolderFenceTest, ZombieIsRefused) {
  ASSERT_TRUE(good(fence().enter(token_of(34, '2'))));
  EXPECT_TRUE(bad(replace(token_of(33, '1'), "zombie"), ErrorCode::fenced_out));
  EXPECT_EQ(page(), "first");
  EXPECT_TRUE(good(replace(token_of(34, '2'), "second")));
  EXPECT_TRUE(bad(replace(token_of(33, '1'), "zombie"), ErrorCode::fenced_out));
  EXPECT_EQ(page(), "second");
  EXPECT_EQ(fence().mark()->refused, 2);
}

TEST_F(FolderFenceTest, OlderOrSameWriteOfTheSameHolderIsRefused) {
  ASSERT_TRUE(good(replace(token_of(33, '1'), "two", {.sequence = 2})));
  EXPECT_TRUE(bad(replace(token_of(33, '1'), "one", {.sequence = 1}), ErrorCode::fenced_out));
  EXPECT_TRUE(bad(replace(token_of(33, '1'), "two", {.sequence = 2}), ErrorCode::fenced_out));
  EXPECT_EQ(page(), "two");
}

TEST_F(FolderFenceTest, WhoReadsItGoesOnReadingThePreviousVersion) {
  const Fd open(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(good(replace(token_of(33, '1'), "second")));
  const Fd page(openat(open.get(), "sub/page", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(page);
  char text[8] = {};
  EXPECT_EQ(read(page.get(), text, sizeof text), 5);
  EXPECT_STREQ(text, "first");
  ASSERT_TRUE(good(replace(token_of(33, '1'), "third")));
  EXPECT_LT(openat(open.get(), "sub/page", O_RDONLY | O_CLOEXEC), 0) << "older ones are removed";
}

TEST_F(FolderFenceTest, FileCallsDoNotFit) {
  EXPECT_TRUE(bad(fence().read(token_of(33, '1')), ErrorCode::invalid));
  EXPECT_TRUE(bad(fence().write(token_of(33, '1'), "x"), ErrorCode::invalid));
  EXPECT_TRUE(bad(fence().update(token_of(33, '1'), [](std::string text) { return text; }),
                  ErrorCode::invalid));
  EXPECT_FALSE(fence().mark()->mark) << "and did not enter";
}

TEST_F(FolderFenceTest, ReplacementMustBeAFolder) {
  auto next = fence().stage();
  ASSERT_TRUE(good(next));
  std::filesystem::remove(next->path());
  write_text(next->path(), "a file");
  EXPECT_TRUE(bad(next->publish(token_of(33, '1')), ErrorCode::invalid));
  EXPECT_EQ(page(), "first");
}

TEST_F(FolderFenceTest, CopiesCarryTheMark) {
  ASSERT_TRUE(good(replace(token_of(34, '2'), "second")));
  const rig::TempFolder copies;
  const std::string to = (copies.path() / "copy").native();
  ASSERT_EQ(system(("cp -a '" + scratch_.path().native() + "' '" + to + "'").c_str()), 0);
  EXPECT_EQ(read_text(to + "/site/sub/page").value(), "second");
  EXPECT_TRUE(bad(Fence::open(to + "/site")->enter(token_of(33, '1')), ErrorCode::fenced_out));
}

TEST_F(FolderFenceTest, FolderPutInItsPlaceIsNoticedAndCanBeTakenWithItsMark) {
  ASSERT_TRUE(good(replace(token_of(34, '2'), "second")));
  std::filesystem::remove(path_);
  std::filesystem::create_directories(path_ / "sub");
  write_text(path_ / "sub/page", "restored");
  const auto unknown = replace(token_of(35, '3'), "third");
  ASSERT_TRUE(bad(unknown, ErrorCode::unavailable));
  ASSERT_TRUE(good(install_fence(path_)));
  EXPECT_EQ(page(), "restored");
  EXPECT_TRUE(bad(replace(token_of(33, '1'), "zombie"), ErrorCode::fenced_out));
  EXPECT_TRUE(good(replace(token_of(35, '3'), "third")));
}

TEST_F(FolderFenceTest, LinkThatLeadsElsewhereIsNotFollowed) {
  std::filesystem::create_directories(scratch_.path() / "elsewhere");
  std::filesystem::remove(path_);
  std::filesystem::create_symlink("elsewhere", path_);
  EXPECT_TRUE(bad(replace(token_of(33, '1'), "second"), ErrorCode::unavailable));
  const auto install = install_fence(path_);
  ASSERT_TRUE(bad(install, ErrorCode::invalid));
  EXPECT_THAT(install.error().message, HasSubstr("symbolic link"));
}

}  // namespace
}  // namespace leasehold::files
