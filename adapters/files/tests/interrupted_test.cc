// Killed or frozen after any system call of an operation.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "leasehold/files/fence.h"
#include "stepped_child.h"
#include "visits.h"

namespace leasehold::files {
namespace {

using namespace std::chrono_literals;

constexpr int kDone = 0;
constexpr int kRefused = 7;
constexpr int kOther = 8;

int exit_of(const Status& status) {
  if (status) return kDone;
  return status.error().code == ErrorCode::fenced_out ? kRefused : kOther;
}

long entries(const std::filesystem::path& folder) {
  using Each = std::filesystem::directory_iterator;
  return std::distance(Each(folder), Each());
}

class InterruptedTest : public ::testing::Test {
 protected:
  // A folder for each interruption, with the file as the last holder left it.
  std::filesystem::path fresh_folder() {
    const auto folder = scratch_.path() / std::to_string(++folders_);
    std::filesystem::create_directory(folder);
    return folder;
  }
  std::filesystem::path fresh_file() {
    const auto path = fresh_folder() / "list";
    write_text(path, "");
    EXPECT_TRUE(good(install_fence(path)));
    EXPECT_TRUE(good(append(path, 33, '1')));
    return path;
  }
  static std::string content(const std::filesystem::path& path) {
    return read_text(path).value_or("none");
  }
  static void expect_no_leftovers(const std::filesystem::path& path, long versions = 1) {
    const auto vault = path.parent_path() / ".leasehold" / path.filename();
    EXPECT_EQ(entries(vault), versions);
    EXPECT_EQ(entries(path.parent_path()), 2) << "the file and the hidden folder";
    for (const auto& version : std::filesystem::directory_iterator(vault)) {
      EXPECT_EQ(entries(version.path()), 2) << "data and mark";
    }
  }

  // Off the disk: these tests cut no power, and sync often.
  rig::TempFolder scratch_{"/dev/shm"};
  int folders_ = 0;
};

TEST_F(InterruptedTest, KilledDuringAnUpdateLeavesMarkAndDataTogether) {
  int before = 0;
  int after = 0;
  for (int calls = 1;; ++calls) {
    const auto path = fresh_file();
    SteppedChild child([&] { return exit_of(append(path, 34, '2')); });
    if (!child.step(calls)) break;
    child.kill();
    const std::int64_t mark = mark_of(path);
    EXPECT_EQ(content(path), mark == 34 ? "33,34," : "33,") << calls;
    (mark == 34 ? after : before) += 1;
    EXPECT_TRUE(good(append(path, 35, '3')));
    EXPECT_EQ(content(path), mark == 34 ? "33,34,35," : "33,35,") << calls;
    expect_no_leftovers(path);
    EXPECT_TRUE(bad(append(path, 34, '2'), ErrorCode::fenced_out));
  }
  EXPECT_GT(before, 20) << "the child was not killed in the middle";
  EXPECT_GT(after, 2);
}

TEST_F(InterruptedTest, KilledWhileEnteringLeavesTheDataAndAWholeMark) {
  bool raised = false;
  bool kept = false;
  for (int calls = 1;; ++calls) {
    const auto path = fresh_file();
    SteppedChild child(
        [&] { return exit_of(Fence::open(path)->enter(token_of(34, '2')).map([](auto) {})); });
    if (!child.step(calls)) break;
    child.kill();
    const std::int64_t mark = mark_of(path);
    (mark == 34 ? raised : kept) = true;
    EXPECT_EQ(content(path), "33,");
    EXPECT_TRUE(mark == 33 || mark == 34) << mark;
    EXPECT_EQ(append(path, 33, '1').has_value(), mark == 33) << calls;
    EXPECT_TRUE(good(append(path, 35, '3')));
    expect_no_leftovers(path);
  }
  EXPECT_TRUE(raised && kept);
}

TEST_F(InterruptedTest, KilledDuringARefusalChangesNothing) {
  for (int calls = 1;; ++calls) {
    const auto path = fresh_file();
    SteppedChild child([&] { return exit_of(append(path, 32, '2')); });
    if (!child.step(calls)) {
      EXPECT_GT(calls, 10);
      break;
    }
    child.kill();
    EXPECT_EQ(content(path), "33,");
    EXPECT_EQ(mark_of(path), 33);
    EXPECT_TRUE(good(append(path, 33, '1')));
  }
}

TEST_F(InterruptedTest, KilledDuringTheReplacementOfAFolderLeavesOneWholeVersion) {
  int before = 0;
  int after = 0;
  for (int calls = 1;; ++calls) {
    const auto path = fresh_folder() / "site";
    std::filesystem::create_directory(path);
    ASSERT_TRUE(good(install_fence(path)));
    ASSERT_TRUE(good(replace_folder(path, 33, '1')));
    SteppedChild child([&] { return exit_of(replace_folder(path, 34, '2')); });
    if (!child.step(calls)) break;
    child.kill();
    const std::int64_t mark = mark_of(path);
    EXPECT_EQ(content(path / kPage), std::to_string(mark)) << calls;
    (mark == 34 ? after : before) += 1;
    EXPECT_TRUE(good(replace_folder(path, 35, '3')));
    EXPECT_EQ(content(path / kPage), "35");
    expect_no_leftovers(path, 2);
  }
  EXPECT_GT(before, 20);
  EXPECT_GT(after, 2);
}

TEST_F(InterruptedTest, KilledWhileInstallingLosesNothing) {
  for (const bool folder : {false, true}) {
    for (int calls = 1;; ++calls) {
      const auto path = fresh_folder() / "thing";
      const auto page = folder ? path / "page" : path;
      if (folder) std::filesystem::create_directory(path);
      write_text(page, "precious");
      SteppedChild child([&] { return exit_of(install_fence(path)); });
      if (!child.step(calls)) {
        EXPECT_GT(calls, 20);
        break;
      }
      child.kill();
      if (!folder) {
        EXPECT_EQ(content(page), "precious") << calls;
      }
      ASSERT_TRUE(good(install_fence(path))) << calls;
      EXPECT_EQ(content(page), "precious") << calls;
      ASSERT_TRUE(good(Fence::open(path)->enter(token_of(33, '1')))) << calls;
      EXPECT_EQ(content(page), "precious") << calls;
      expect_no_leftovers(path);
    }
  }
}

// The one that is frozen has token 33, the one that comes has 34.
TEST_F(InterruptedTest, FrozenWriterBlocksOrIsOvertakenAndNeverOverwrites) {
  int blocked = 0;
  int overtaken = 0;
  for (int calls = 1;; ++calls) {
    const auto path = fresh_folder() / "list";
    write_text(path, "");
    ASSERT_TRUE(good(install_fence(path)));
    SteppedChild frozen([&] { return exit_of(append(path, 33, '1')); });
    if (!frozen.step(calls)) break;
    const auto came = append(path, 34, '2', {.wait = 0ms});
    const auto ended = frozen.finish();
    ASSERT_TRUE(ended);
    if (came) {
      const bool was_first = *ended == kDone;
      EXPECT_TRUE(was_first || *ended == kRefused) << calls;
      EXPECT_EQ(content(path), was_first ? "33,34," : "34,") << calls;
      EXPECT_EQ(mark_of(path), 34);
      overtaken += !was_first;
      continue;
    }
    EXPECT_EQ(came.error().code, ErrorCode::unavailable) << to_string(came.error());
    EXPECT_EQ(*ended, kDone) << calls;
    EXPECT_EQ(content(path), "33,") << calls;
    EXPECT_EQ(mark_of(path), 33);
    ++blocked;
  }
  EXPECT_GT(blocked, 20);
  EXPECT_GT(overtaken, 2);
}

// A child that is forked in the middle has its parent's descriptor, and so its lock.
TEST_F(InterruptedTest, ForkedChildNeitherWritesNorUnlocksForItsParent) {
  const auto path = fresh_file();
  pid_t child = -1;
  int child_status = -1;
  ErrorCode others = ErrorCode::internal;
  const auto done = Fence::open(path)->update(token_of(34, '2'), [&](std::string list) {
    child = fork();
    if (child == 0) return list + "child";
    waitpid(child, &child_status, 0);
    const auto came = append(path, 35, '3', {.wait = 0ms});
    if (!came) others = came.error().code;
    return list + "34,";
  });
  if (child == 0) _exit(!done && done.error().code == ErrorCode::invalid ? 0 : 1);
  EXPECT_TRUE(WIFEXITED(child_status) && WEXITSTATUS(child_status) == 0);
  EXPECT_EQ(others, ErrorCode::unavailable) << "the child has unlocked it";
  EXPECT_TRUE(good(done));
  EXPECT_EQ(content(path), "33,34,");
}

TEST_F(InterruptedTest, FrozenFillerOfAReplacementBlocksNobodyAndIsRefused) {
  const auto path = fresh_file();
  const auto fence = Fence::open(path);
  auto slow = fence->stage();
  ASSERT_TRUE(good(slow));
  write_text(slow->path(), "zombie");
  ASSERT_TRUE(good(append(path, 34, '2', {.wait = 0ms})));
  EXPECT_TRUE(bad(slow->publish(token_of(33, '1')), ErrorCode::fenced_out));
  EXPECT_EQ(content(path), "33,34,");
}

}  // namespace
}  // namespace leasehold::files
