#include "leasehold/files/fence.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "fence_admin.h"
#include "visits.h"

namespace leasehold::files {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class FileFenceTest : public ::testing::Test {
 protected:
  FileFenceTest() {
    write_text(path_, "first");
    EXPECT_TRUE(good(install_fence(path_)));
  }

  Fence fence() const { return Fence::open(path_).value(); }
  std::string content() const { return read_text(path_).value(); }
  FenceMark mark() const { return fence().mark().value(); }
  struct stat status() const {
    struct stat found {};
    EXPECT_EQ(lstat(path_.c_str(), &found), 0);
    return found;
  }
  // Version folders in the hidden folder.
  long versions() const {
    using Each = std::filesystem::directory_iterator;
    return std::distance(Each(scratch_.path() / ".leasehold/report.json"), Each());
  }

  rig::TempFolder scratch_;
  std::filesystem::path path_ = scratch_.path() / "report.json";
};

TEST_F(FileFenceTest, InstallingLeavesAnOrdinaryFile) {
  EXPECT_TRUE(S_ISREG(status().st_mode));
  EXPECT_EQ(content(), "first");
  EXPECT_FALSE(mark().mark);
  EXPECT_EQ(mark().resource.str(), "report.json");
}

TEST_F(FileFenceTest, InstallingAgainChangesNothing) {
  ASSERT_TRUE(good(fence().write(token_of(33, '1'), "a")));
  const ino_t before = status().st_ino;
  EXPECT_TRUE(good(install_fence(path_)));
  EXPECT_EQ(status().st_ino, before);
  EXPECT_EQ(mark().mark, token_of(33, '1'));
  EXPECT_EQ(versions(), 1);
}

TEST_F(FileFenceTest, ManyMayInstallAtOnce) {
  const auto path = scratch_.path() / "shared";
  write_text(path, "x");
  constexpr int count = 8;
  std::latch start(count);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        EXPECT_TRUE(good(install_fence(path)));
      });
    }
  }
  EXPECT_TRUE(good(Fence::open(path)->write(token_of(1, '1'), "y")));
}

TEST_F(FileFenceTest, WithoutAFenceItIsUnavailable) {
  const auto bare = scratch_.path() / "bare";
  write_text(bare, "x");
  const auto fence = Fence::open(bare);
  ASSERT_TRUE(bad(fence, ErrorCode::unavailable));
  EXPECT_THAT(fence.error().message, HasSubstr("leasehold fence install"));
  EXPECT_TRUE(bad(install_fence(scratch_.path() / "missing"), ErrorCode::unavailable));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / ".leasehold/missing"));
}

TEST_F(FileFenceTest, ZombieIsRefusedAlsoBeforeTheNewHolderHasWritten) {
  ASSERT_TRUE(good(fence().write(token_of(33, '1'), "33")));
  ASSERT_TRUE(good(fence().enter(token_of(34, '2'))));
  const auto late = fence().write(token_of(33, '1'), "zombie");
  ASSERT_TRUE(bad(late, ErrorCode::fenced_out));
  EXPECT_EQ(late.error().refusal->offered, 33);
  EXPECT_EQ(late.error().refusal->mark, 34);
  EXPECT_EQ(content(), "33");
  EXPECT_EQ(mark().refused, 1);
}

TEST_F(FileFenceTest, OlderWriteOfTheSameHolderIsRefused) {
  const Token token = token_of(33, '1');
  EXPECT_EQ(fence().enter(token).value(), 0);
  ASSERT_TRUE(good(fence().write(token, "two", {.sequence = 2})));
  EXPECT_TRUE(bad(fence().write(token, "one", {.sequence = 1}), ErrorCode::fenced_out));
  EXPECT_EQ(content(), "two");
  EXPECT_EQ(fence().enter(token).value(), 2);
  EXPECT_EQ(mark().refused, 1);
}

TEST_F(FileFenceTest, SameWriteAgainIsDoneAlready) {
  const Token token = token_of(33, '1');
  ASSERT_TRUE(good(fence().write(token, "one", {.sequence = 1})));
  const ino_t before = status().st_ino;
  EXPECT_TRUE(good(fence().write(token, "one", {.sequence = 1})));
  EXPECT_EQ(status().st_ino, before);
  EXPECT_TRUE(bad(fence().write(token, "other", {.sequence = 1}), ErrorCode::fenced_out));
  EXPECT_EQ(content(), "one");
}

TEST_F(FileFenceTest, SequenceNumbersArePositive) {
  for (const std::int64_t wrong : {0, -1}) {
    EXPECT_TRUE(
        bad(fence().write(token_of(33, '1'), "x", {.sequence = wrong}), ErrorCode::invalid));
  }
  EXPECT_FALSE(mark().mark);
}

TEST_F(FileFenceTest, UpdateIsAllOrNothing) {
  ASSERT_TRUE(good(fence().update(token_of(33, '1'), [](std::string text) { return text + "+"; })));
  EXPECT_EQ(content(), "first+");
  const auto failed = fence().update(token_of(34, '2'), [](std::string) -> Result<std::string> {
    return fail(ErrorCode::lost, "too little time left");
  });
  EXPECT_TRUE(bad(failed, ErrorCode::lost));
  const auto throwing = [&] {
    (void)fence().update(token_of(34, '2'),
                         [](std::string) -> std::string { throw std::runtime_error("work"); });
  };
  EXPECT_THROW(throwing(), std::runtime_error);
  EXPECT_EQ(content(), "first+");
  EXPECT_EQ(mark().mark, token_of(33, '1'));
  EXPECT_TRUE(good(fence().write(token_of(33, '1'), "unlocked again")));
}

TEST_F(FileFenceTest, ChangeIsNotRunWhenRefused) {
  ASSERT_TRUE(good(fence().write(token_of(34, '2'), "b")));
  bool ran = false;
  const auto late = fence().update(token_of(33, '1'), [&](std::string text) {
    ran = true;
    return text;
  });
  EXPECT_TRUE(bad(late, ErrorCode::fenced_out));
  EXPECT_FALSE(ran);
}

TEST_F(FileFenceTest, ReadersSeeOneVersionOrTheOther) {
  const std::string a(300'000, 'a');
  const std::string b(300'000, 'b');
  ASSERT_TRUE(good(fence().write(token_of(1, '1'), a)));
  std::atomic<int> rounds = 0;
  int torn = 0;
  {
    std::jthread reader([&](std::stop_token stop) {
      while (!stop.stop_requested()) {
        const auto text = read_text(path_);
        if (!text || (*text != a && *text != b)) ++torn;
        ++rounds;
      }
    });
    for (std::int64_t number = 2; number < 40 || rounds < 40; ++number) {
      ASSERT_TRUE(good(fence().write(token_of(number, '1'), number % 2 == 0 ? b : a)));
    }
  }
  EXPECT_EQ(torn, 0);
}

TEST_F(FileFenceTest, WhoHasItOpenGoesOnReadingTheOldVersion) {
  std::ifstream open(path_);
  ASSERT_TRUE(good(fence().write(token_of(33, '1'), "second")));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(open), {}), "first");
}

TEST_F(FileFenceTest, ModeAndAttributesStay) {
  ASSERT_EQ(chmod(path_.c_str(), 0640), 0);
  ASSERT_EQ(setxattr(path_.c_str(), "user.colour", "red", 3, 0), 0);
  const mode_t old_mask = umask(0077);
  ASSERT_TRUE(good(fence().write(token_of(33, '1'), "a")));
  umask(old_mask);
  EXPECT_EQ(status().st_mode & 07777, 0640u);
  char colour[8] = {};
  EXPECT_EQ(getxattr(path_.c_str(), "user.colour", colour, sizeof colour), 3);
  EXPECT_STREQ(colour, "red");
}

TEST_F(FileFenceTest, OneVersionIsKept) {
  for (int number = 1; number < 5; ++number) {
    ASSERT_TRUE(good(fence().write(token_of(number, '1'), "a")));
    EXPECT_EQ(versions(), 1);
    EXPECT_EQ(status().st_nlink, 2u);
  }
}

TEST_F(FileFenceTest, LargeReplacementIsFilledWhileOthersWork) {
  auto next = fence().stage();
  ASSERT_TRUE(good(next));
  write_text(next->path(), "from a stage");
  ASSERT_TRUE(good(fence().write(token_of(33, '1'), "meanwhile")));
  EXPECT_TRUE(good(fence().enter(token_of(33, '1'))));
  ASSERT_TRUE(good(next->publish(token_of(33, '1'))));
  EXPECT_EQ(content(), "from a stage");
  EXPECT_TRUE(bad(next->publish(token_of(33, '1')), ErrorCode::invalid));
  EXPECT_TRUE(S_ISREG(status().st_mode));
  EXPECT_EQ(status().st_mode & 0777, 0644u);
}

TEST_F(FileFenceTest, RefusedReplacementIsDropped) {
  {
    auto next = fence().stage();
    ASSERT_TRUE(good(next));
    write_text(next->path(), "zombie");
    ASSERT_TRUE(good(fence().enter(token_of(34, '2'))));
    EXPECT_EQ(versions(), 2);
    EXPECT_TRUE(bad(next->publish(token_of(33, '1')), ErrorCode::fenced_out));
  }
  EXPECT_EQ(content(), "first");
  EXPECT_EQ(versions(), 1);
  EXPECT_EQ(mark().refused, 1);
}

TEST_F(FileFenceTest, ReplacementMustBeAFileOfItsOwn) {
  auto next = fence().stage();
  ASSERT_TRUE(good(next));
  write_text(scratch_.path() / "other", "other");
  std::filesystem::remove(next->path());
  EXPECT_TRUE(bad(next->publish(token_of(33, '1')), ErrorCode::invalid));
  std::filesystem::create_symlink(scratch_.path() / "other", next->path());
  EXPECT_TRUE(bad(next->publish(token_of(33, '1')), ErrorCode::invalid));
  std::filesystem::remove(next->path());
  std::filesystem::create_hard_link(scratch_.path() / "other", next->path());
  EXPECT_TRUE(bad(next->publish(token_of(33, '1')), ErrorCode::invalid));
  std::filesystem::remove(next->path());
  EXPECT_EQ(content(), "first");
  std::filesystem::rename(scratch_.path() / "other", next->path());
  EXPECT_TRUE(good(next->publish(token_of(33, '1'))));
  EXPECT_EQ(content(), "other");
}

TEST_F(FileFenceTest, WaitingEnds) {
  const Fd other(open((scratch_.path() / ".leasehold/report.json").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(flock(other.get(), LOCK_EX), 0);
  const auto impatient = Fence::open(path_, {.wait = 20ms});
  const auto late = impatient->write(token_of(33, '1'), "x");
  ASSERT_TRUE(bad(late, ErrorCode::unavailable));
  EXPECT_THAT(late.error().message, HasSubstr("another writer"));

  std::stop_source stop;
  const auto stoppable = Fence::open(path_, {.wait = 10min, .stop = stop.get_token()});
  stop.request_stop();
  EXPECT_TRUE(bad(stoppable->write(token_of(33, '1'), "x"), ErrorCode::cancelled));
  EXPECT_TRUE(good(fence().mark())) << "looking does not wait";
  flock(other.get(), LOCK_UN);
  EXPECT_TRUE(good(impatient->write(token_of(33, '1'), "x")));
}

// ---- what others do to the file -----------------------------------------------------------------

TEST_F(FileFenceTest, EditInPlaceKeepsTheMark) {
  ASSERT_TRUE(good(fence().write(token_of(33, '1'), "a")));
  write_text(path_, "edited");
  EXPECT_EQ(fence().read(token_of(33, '1')).value(), "edited");
  EXPECT_TRUE(bad(fence().read(token_of(32, '1')), ErrorCode::fenced_out));
}

TEST_F(FileFenceTest, FileReplacedByAnEditorIsNoticedAndCanBeTakenWithItsMark) {
  ASSERT_TRUE(good(fence().write(token_of(34, '2'), "a")));
  write_text(scratch_.path() / "new", "edited");
  std::filesystem::rename(scratch_.path() / "new", path_);
  const auto unknown = fence().write(token_of(35, '3'), "b");
  ASSERT_TRUE(bad(unknown, ErrorCode::unavailable));
  EXPECT_THAT(unknown.error().message, HasSubstr("leasehold fence install"));
  EXPECT_TRUE(bad(fence().read(token_of(35, '3')), ErrorCode::unavailable));
  EXPECT_TRUE(bad(fence().mark(), ErrorCode::unavailable));
  EXPECT_EQ(content(), "edited");

  ASSERT_TRUE(good(install_fence(path_)));
  EXPECT_EQ(mark().mark, token_of(34, '2'));
  EXPECT_TRUE(bad(fence().write(token_of(33, '1'), "zombie"), ErrorCode::fenced_out));
  EXPECT_EQ(fence().read(token_of(35, '3')).value(), "edited");
  EXPECT_EQ(versions(), 1);
}

TEST_F(FileFenceTest, DeletedFileKeepsItsMark) {
  ASSERT_TRUE(good(fence().write(token_of(34, '2'), "a")));
  std::filesystem::remove(path_);
  const auto missing = fence().write(token_of(35, '3'), "b");
  ASSERT_TRUE(bad(missing, ErrorCode::unavailable));
  EXPECT_THAT(missing.error().message, HasSubstr("missing"));
  EXPECT_TRUE(bad(install_fence(path_), ErrorCode::unavailable));
  write_text(path_, "anew");
  EXPECT_TRUE(bad(fence().write(token_of(35, '3'), "b"), ErrorCode::unavailable));
  ASSERT_TRUE(good(install_fence(path_)));
  EXPECT_TRUE(bad(fence().write(token_of(33, '1'), "zombie"), ErrorCode::fenced_out));
}

TEST_F(FileFenceTest, CopiesOfTheFolderCarryTheMark) {
  ASSERT_TRUE(good(fence().write(token_of(34, '2'), "a")));
  const std::string from = scratch_.path().native();
  for (const std::string how : {"cp -a", "cp -r", "cp -rp"}) {
    const rig::TempFolder copies;
    const std::string to = (copies.path() / "copy").native();
    ASSERT_EQ(system((how + " '" + from + "' '" + to + "'").c_str()), 0);
    const auto copy = Fence::open(to + "/report.json");
    ASSERT_TRUE(good(copy)) << how;
    EXPECT_TRUE(bad(copy->write(token_of(33, '1'), "zombie"), ErrorCode::fenced_out)) << how;
    EXPECT_TRUE(good(copy->write(token_of(35, '3'), "b"))) << how;
    EXPECT_EQ(read_text(to + "/report.json").value(), "b");
    EXPECT_EQ(content(), "a") << "the copy is a thing of its own";
  }
}

TEST_F(FileFenceTest, CopyOfTheFileAloneIsAnOrdinaryFileWithoutAFence) {
  ASSERT_EQ(system(("cp -a '" + path_.native() + "' '" + path_.native() + ".bak'").c_str()), 0);
  const auto copy = path_.native() + ".bak";
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(copy)));
  EXPECT_EQ(read_text(copy).value(), "first");
  EXPECT_TRUE(bad(Fence::open(copy), ErrorCode::unavailable));
}

TEST_F(FileFenceTest, MarkOfAnotherVersionIsRefused) {
  ASSERT_TRUE(good(fence().write(token_of(34, '2'), "a")));
  const auto vault = scratch_.path() / ".leasehold/report.json";
  const auto version = std::filesystem::directory_iterator(vault)->path();
  for (const auto& [text, words] :
       {std::pair("leasehold-fence 1\n", "to begin afresh"),
        std::pair("leasehold-fence 3\n", "use a program that is at least as new")}) {
    write_text(version / "mark", text);
    const auto refused = fence().write(token_of(35, '1'), "b");
    ASSERT_TRUE(bad(refused, ErrorCode::unavailable));
    EXPECT_THAT(refused.error().message, HasSubstr(words));
    EXPECT_EQ(content(), "a");
  }
  std::filesystem::remove_all(vault);  // as the sentence says
  ASSERT_TRUE(good(install_fence(path_)));
  EXPECT_EQ(content(), "a");
  EXPECT_TRUE(good(fence().write(token_of(33, '1'), "b"))) << "the mark is forgotten";
}

TEST_F(FileFenceTest, DamagedMarkIsNotGuessedNorForgotten) {
  ASSERT_TRUE(good(fence().write(token_of(34, '2'), "a")));
  const auto version =
      std::filesystem::directory_iterator(scratch_.path() / ".leasehold/report.json")->path();
  const std::string whole = read_text(version / "mark").value();
  for (const std::string& broken : {std::string(), whole.substr(0, whole.size() - 4),
                                    std::string("leasehold-fence 1\nrefused 0\nend\n")}) {
    write_text(version / "mark", broken);
    EXPECT_TRUE(bad(fence().write(token_of(33, '1'), "b"), ErrorCode::unavailable));
    EXPECT_TRUE(bad(fence().mark(), ErrorCode::unavailable));
    EXPECT_TRUE(bad(install_fence(path_), ErrorCode::unavailable)) << "it must not begin anew";
  }
  EXPECT_EQ(content(), "a");
  write_text(version / "mark", whole);
  EXPECT_TRUE(bad(fence().write(token_of(33, '1'), "b"), ErrorCode::fenced_out));
}

// ---- the operator's view
// -------------------------------------------------------------------------

TEST_F(FileFenceTest, AdminInstallsShowsAndAdopts) {
  const auto other = scratch_.path() / "other.txt";
  write_text(other, "x");
  const auto admin = open_fence_admin(Url::parse("file:" + other.native()).value());
  ASSERT_TRUE(good(admin));
  EXPECT_TRUE(bad((*admin)->marks(), ErrorCode::unavailable));
  ASSERT_TRUE(good((*admin)->install()));
  ASSERT_TRUE(good(Fence::open(other)->enter(token_of(33, '1'))));
  const auto marks = (*admin)->marks();
  ASSERT_TRUE(good(marks));
  ASSERT_EQ(marks->size(), 1u);
  EXPECT_EQ(marks->front().resource.str(), "other.txt");
  EXPECT_EQ(marks->front().mark, token_of(33, '1'));

  const auto least = TokenNumber::of(3).value();
  const auto wrong = (*admin)->adopt(ResourceName::parse("x").value(), lineage_of('b'), least);
  ASSERT_TRUE(bad(wrong, ErrorCode::invalid));
  EXPECT_THAT(wrong.error().message, HasSubstr("other.txt"));
  ASSERT_TRUE(
      good((*admin)->adopt(ResourceName::parse("other.txt").value(), lineage_of('b'), least)));
  EXPECT_TRUE(bad(Fence::open(other)->enter(token_of(34, '1')), ErrorCode::fenced_out));
  EXPECT_TRUE(good(Fence::open(other)->enter(token_of(3, '1', 'b'))));
}

TEST_F(FileFenceTest, WrongUrls) {
  for (const char* text : {"file:", "file://host/data", "file:/data?mode=ro",
                           "file:/data?filesystem=nfs", "file://user@/data"}) {
    EXPECT_TRUE(bad(open_fence_admin(Url::parse(text).value()), ErrorCode::invalid)) << text;
  }
  EXPECT_TRUE(good(open_fence_admin(Url::parse("file:/data?filesystem=local").value())));
}

}  // namespace
}  // namespace leasehold::files
