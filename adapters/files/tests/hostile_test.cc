// Names, links and disks that are not as one would wish. In each case: a clear error, no write,
// nothing lost.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <iostream>

#include "leasehold/files/fence.h"
#include "testing/in_child.h"
#include "visits.h"

namespace leasehold::files {
namespace {

using leasehold::testing::holds_in_child;
using leasehold::testing::holds_without_privileges;
using leasehold::testing::in_own_mount;

using ::testing::HasSubstr;

class HostileTest : public ::testing::Test {
 protected:
  std::filesystem::path fenced(const std::string& name, const std::string& content = "first") {
    const auto path = scratch_.path() / name;
    write_text(path, content);
    EXPECT_TRUE(good(install_fence(path)));
    return path;
  }

  rig::TempFolder scratch_;
};

bool says(const Status& status, ErrorCode code, const std::string& words) {
  if (!status && status.error().code == code &&
      to_string(status.error()).find(words) != std::string::npos) {
    return true;
  }
  std::cerr << (status ? "it succeeded" : to_string(status.error())) << '\n';
  return false;
}

TEST_F(HostileTest, WrongPathsAreInvalid) {
  const std::string folder = scratch_.path().native() + "/";
  const std::vector<std::string> paths = {"",
                                          "/",
                                          ".",
                                          "..",
                                          folder + "x/..",
                                          folder + ".leasehold",
                                          folder + "a\nb",
                                          folder + "a\x1b[2J",
                                          folder + "a\x7f",
                                          folder + "a\xff",
                                          folder + "b\nc/name",
                                          folder + std::string(256, 'n'),
                                          folder + std::string(5000, 'n')};
  for (const std::string& path : paths) {
    EXPECT_TRUE(bad(Fence::open(path), ErrorCode::invalid)) << path;
    EXPECT_TRUE(bad(install_fence(path), ErrorCode::invalid)) << path;
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path()));
}

TEST_F(HostileTest, EveryNameOfAFileWorks) {
  for (const std::string& name :
       {std::string(255, 'n'), std::string("a b  "), std::string("-rf"), std::string("*"),
        std::string("$(id)"), std::string("'\""), std::string("Жук🔒"), std::string("...")}) {
    const auto path = fenced(name);
    const auto fence = Fence::open(path);
    ASSERT_TRUE(good(fence)) << name;
    EXPECT_TRUE(good(fence->write(token_of(34, '2'), "b"))) << name;
    EXPECT_TRUE(bad(fence->write(token_of(33, '1'), "a"), ErrorCode::fenced_out)) << name;
    EXPECT_EQ(read_text(path).value(), "b");
    EXPECT_EQ(fence->mark()->resource.str(), name);
  }
}

TEST_F(HostileTest, TwoWaysToOneFileMeetOneFence) {
  const auto path = fenced("file");
  std::filesystem::create_directory(scratch_.path() / "sub");
  std::filesystem::create_symlink(scratch_.path(), scratch_.path() / "way");
  ASSERT_TRUE(good(Fence::open(path)->enter(token_of(34, '2'))));
  for (const auto& other : {scratch_.path() / "sub/../file", scratch_.path() / "way/file"}) {
    EXPECT_TRUE(bad(Fence::open(other)->write(token_of(33, '1'), "a"), ErrorCode::fenced_out));
  }
}

TEST_F(HostileTest, TargetThatBecameALinkIsNotFollowed) {
  const auto path = fenced("file");
  const auto victim = scratch_.path() / "victim";
  write_text(victim, "precious");
  std::filesystem::remove(path);
  std::filesystem::create_symlink(victim, path);
  EXPECT_TRUE(bad(Fence::open(path)->write(token_of(33, '1'), "x"), ErrorCode::unavailable));
  EXPECT_TRUE(bad(Fence::open(path)->read(token_of(33, '1')), ErrorCode::unavailable));
  EXPECT_TRUE(bad(install_fence(path), ErrorCode::invalid));
  EXPECT_EQ(read_text(victim).value(), "precious");
  EXPECT_TRUE(std::filesystem::is_symlink(path));
}

TEST_F(HostileTest, HiddenFolderThatBecameALinkIsNotFollowed) {
  const auto path = fenced("file");
  const auto hidden = scratch_.path() / ".leasehold";
  std::filesystem::rename(hidden, scratch_.path() / "moved");
  std::filesystem::create_directory_symlink("moved", hidden);
  EXPECT_TRUE(bad(Fence::open(path), ErrorCode::unavailable));
  EXPECT_TRUE(bad(install_fence(path), ErrorCode::unavailable));
  std::filesystem::remove(hidden);
  std::filesystem::rename(scratch_.path() / "moved", hidden);
  std::filesystem::rename(hidden / "file", hidden / "moved");
  std::filesystem::create_directory_symlink("moved", hidden / "file");
  EXPECT_TRUE(bad(Fence::open(path), ErrorCode::unavailable));
  EXPECT_EQ(read_text(path).value(), "first");
}

TEST_F(HostileTest, LinksInsideTheHiddenFolderAreNotFollowed) {
  const auto path = fenced("file");
  const auto victim = scratch_.path() / "victim";
  write_text(victim, "precious");
  const auto version =
      std::filesystem::directory_iterator(scratch_.path() / ".leasehold/file")->path();
  std::filesystem::create_symlink(victim, version / "mark.new");
  std::filesystem::create_directory_symlink(scratch_.path(), version.parent_path() / "leftover");
  ASSERT_TRUE(good(Fence::open(path)->enter(token_of(33, '1'))));
  EXPECT_EQ(read_text(victim).value(), "precious");
  EXPECT_FALSE(std::filesystem::exists(version.parent_path() / "leftover"));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(HostileTest, OnlyFilesAndFoldersAreFenced) {
  const auto pipe = scratch_.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(bad(install_fence(pipe), ErrorCode::invalid));
  write_text(scratch_.path() / "one", "x");
  std::filesystem::create_hard_link(scratch_.path() / "one", scratch_.path() / "two");
  const auto linked = install_fence(scratch_.path() / "two");
  ASSERT_TRUE(bad(linked, ErrorCode::invalid));
  EXPECT_THAT(linked.error().message, HasSubstr("2 hard links"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / ".leasehold"));
}

TEST_F(HostileTest, HardLinkMadeLaterKeepsTheOldContent) {
  const auto path = fenced("file");
  std::filesystem::create_hard_link(path, scratch_.path() / "other");
  ASSERT_TRUE(good(Fence::open(path)->write(token_of(33, '1'), "second")));
  EXPECT_EQ(read_text(path).value(), "second");
  EXPECT_EQ(read_text(scratch_.path() / "other").value(), "first");
}

TEST_F(HostileTest, PipeInItsPlaceDoesNotHang) {
  const auto path = fenced("file");
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(bad(Fence::open(path)->read(token_of(33, '1')), ErrorCode::unavailable));
  EXPECT_TRUE(bad(install_fence(path), ErrorCode::invalid));
}

TEST_F(HostileTest, MissingFolder) {
  const auto path = scratch_.path() / "missing/file";
  EXPECT_TRUE(bad(Fence::open(path), ErrorCode::unavailable));
  EXPECT_TRUE(bad(install_fence(path), ErrorCode::unavailable));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "missing"));
}

TEST_F(HostileTest, WhoMayNotWriteIsTold) {
  ASSERT_EQ(chmod(scratch_.path().c_str(), 0755), 0);
  const auto path = fenced("file");
  ASSERT_EQ(chmod(scratch_.path().c_str(), 0555), 0);
  ASSERT_EQ(chmod((scratch_.path() / ".leasehold/file").c_str(), 0555), 0);
  for (const auto& version :
       std::filesystem::directory_iterator(scratch_.path() / ".leasehold/file")) {
    ASSERT_EQ(chmod(version.path().c_str(), 0555), 0);
  }
  EXPECT_TRUE(holds_without_privileges([&] {
    const auto fence = Fence::open(path);
    return fence && fence->mark() &&
           says(fence->write(token_of(33, '1'), "x"), ErrorCode::unavailable, "not permitted") &&
           says(fence->enter(token_of(33, '1')).map([](auto) {}), ErrorCode::unavailable,
                "not permitted");
  }));
  ASSERT_EQ(chmod(scratch_.path().c_str(), 0755), 0);
  EXPECT_EQ(read_text(path).value(), "first");
  EXPECT_FALSE(Fence::open(path)->mark()->mark);
}

TEST_F(HostileTest, WhoCannotKeepTheOwnerIsToldAndWritesNothing) {
  if (geteuid() != 0) {  // then nobody here can make a file of another owner
    EXPECT_NE(chown(scratch_.path().c_str(), 1, 1), 0);
    return;
  }
  ASSERT_EQ(chmod(scratch_.path().c_str(), 0777), 0);
  const auto path = fenced("file");
  EXPECT_TRUE(holds_without_privileges([&] {
    return says(Fence::open(path)->write(token_of(33, '1'), "x"), ErrorCode::unavailable,
                "belongs to another user");
  }));
  EXPECT_EQ(read_text(path).value(), "first");
  ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(holds_without_privileges(
      [&] { return Fence::open(path)->write(token_of(33, '1'), "second").has_value(); }));
  ASSERT_TRUE(good(Fence::open(path)->write(token_of(33, '1'), "third")));  // by root
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 65534u);
  EXPECT_EQ(status.st_gid, 65534u);
}

// What a process that may write no more than `bytes` into a file is told about a write.
TEST_F(HostileTest, WriteThatDoesNotFitChangesNothing) {
  const auto path = fenced("file");
  ASSERT_TRUE(good(Fence::open(path)->write(token_of(33, '1'), "second")));
  for (const rlim_t bytes : {0, 1, 100, 4096}) {
    EXPECT_TRUE(holds_in_child([&] {
      const rlimit limit = {bytes, bytes};
      signal(SIGXFSZ, SIG_IGN);
      setrlimit(RLIMIT_FSIZE, &limit);
      return says(Fence::open(path)->write(token_of(34, '2'), std::string(100'000, 'x')),
                  ErrorCode::unavailable, "larger than");
    })) << bytes;
    EXPECT_EQ(read_text(path).value(), "second");
    EXPECT_EQ(Fence::open(path)->mark()->mark, token_of(33, '1'));
  }
  EXPECT_TRUE(good(Fence::open(path)->write(token_of(33, '1'), "third")));
}

TEST_F(HostileTest, FullDiskChangesNothingAndIsTold) {
  EXPECT_TRUE(in_own_mount(scratch_.path(), "tmpfs", "size=1m", 0, [&] {
    const auto path = fenced("file");
    const auto fence = Fence::open(path);
    if (!fence->write(token_of(33, '1'), "second")) return false;
    if (!says(fence->write(token_of(34, '2'), std::string(2'000'000, 'x')), ErrorCode::unavailable,
              "the disk is full")) {
      return false;
    }
    const Fd filler(open((scratch_.path() / "filler").c_str(), O_WRONLY | O_CREAT, 0600));
    const std::string block(4096, 'x');
    while (write(filler.get(), block.data(), block.size()) > 0) {
    }
    const auto refused = fence->write(token_of(32, '1'), "zombie");
    return says(fence->write(token_of(34, '2'), "third"), ErrorCode::unavailable,
                "the disk is full") &&
           says(fence->enter(token_of(34, '2')).map([](auto) {}), ErrorCode::unavailable,
                "the disk is full") &&
           says(refused, ErrorCode::fenced_out, "could not be counted") &&
           read_text(path).value() == "second" && fence->mark()->mark == token_of(33, '1') &&
           truncate((scratch_.path() / "filler").c_str(), 0) == 0 &&
           fence->write(token_of(34, '2'), "third").has_value() &&
           read_text(path).value() == "third";
  }));
}

TEST_F(HostileTest, ReadOnlyFilesystemIsTold) {
  const auto path = fenced("file");
  ASSERT_TRUE(good(Fence::open(path)->enter(token_of(33, '1'))));
  EXPECT_TRUE(in_own_mount(scratch_.path(), nullptr, nullptr, MS_RDONLY, [&] {
    const auto fence = Fence::open(path);
    return fence && fence->mark()->mark == token_of(33, '1') &&
           says(fence->write(token_of(34, '2'), "x"), ErrorCode::unavailable, "read-only") &&
           says(fence->enter(token_of(34, '2')).map([](auto) {}), ErrorCode::unavailable,
                "read-only");
  }));
}

TEST_F(HostileTest, FileThatIsAMountCannotBeReplaced) {
  const auto path = fenced("file");
  EXPECT_TRUE(in_own_mount(path, nullptr, nullptr, 0, [&] {
    const auto late = Fence::open(path)->write(token_of(33, '1'), "x");
    return says(late, ErrorCode::unavailable, "cannot replace") &&
           read_text(path).value() == "first";
  }));
}

TEST_F(HostileTest, WorksOnOverlays) {
  const auto base = scratch_.path();
  EXPECT_TRUE(in_own_mount(base, "tmpfs", "", 0, [&] {
    for (const char* name : {"lower", "upper", "work", "all"}) {
      std::filesystem::create_directory(base / name);
    }
    write_text(base / "lower/image", "from the image");
    std::filesystem::create_directories(base / "lower/folder");
    const std::string layers = "lowerdir=" + (base / "lower").native() +
                               ",upperdir=" + (base / "upper").native() +
                               ",workdir=" + (base / "work").native();
    if (mount("none", (base / "all").c_str(), "overlay", 0, layers.c_str()) != 0) return false;
    const auto path = base / "all/image";
    if (!install_fence(path)) return false;
    const auto fence = Fence::open(path);
    if (!fence->write(token_of(34, '2'), "second")) return false;
    const auto own = base / "all/own";
    std::filesystem::create_directory(own);
    if (!install_fence(own)) return false;
    return says(fence->write(token_of(33, '1'), "zombie"), ErrorCode::fenced_out, "34") &&
           read_text(path).value() == "second" && Fence::open(own)->stage().has_value() &&
           std::filesystem::is_directory(base / "all/folder");
  }));
}

}  // namespace
}  // namespace leasehold::files
