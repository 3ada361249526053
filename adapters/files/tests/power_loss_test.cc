// The power goes after any system call, and what was not synced survives in part.
#include <functional>
#include <random>

#include "leasehold/files/fence.h"
#include "testing/recorded_disk.h"
#include "visits.h"

namespace leasehold::files {
namespace {

using leasehold::testing::RecordedDisk;
using leasehold::testing::Unsynced;

class SeededRandom final : public Random {
 public:
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_{1};
};

// A file or a folder whose installation was interrupted, or answered: it can be used when it was
// installed once more, and nothing of it is lost.
void expect_file_installed(const std::filesystem::path& path, bool answered) {
  EXPECT_EQ(read_text(path).value(), "precious");
  if (answered) {
    EXPECT_TRUE(good(Fence::open(path)));
  }
  ASSERT_TRUE(good(install_fence(path)));
  ASSERT_TRUE(good(append(path, 33, '1')));
  EXPECT_EQ(read_text(path).value(), "precious33,");
}
void expect_folder_installed(const std::filesystem::path& path, bool answered) {
  if (answered) {
    EXPECT_TRUE(good(Fence::open(path)));
  }
  ASSERT_TRUE(good(install_fence(path)));
  EXPECT_EQ(read_text(path / "page").value_or("none"), "precious");
  EXPECT_TRUE(good(replace_folder(path, 33, '1')));
}

class PowerLossTest : public ::testing::Test {
 protected:
  PowerLossTest() { std::filesystem::create_directory(folder_); }

  void fence_file() {
    write_text(file_, "");
    ASSERT_TRUE(good(install_fence(file_)));
    ASSERT_TRUE(good(append(file_, 33, '1')));
  }

  // `check` gets the folder as it is found after a power cut, and whether all steps had been made.
  using Check = std::function<void(const std::filesystem::path& folder, bool at_the_end)>;
  void cut_power(RecordedDisk& disk, const Check& check,
                 std::initializer_list<Unsynced> ways = {Unsynced::none, Unsynced::all,
                                                         Unsynced::some}) {
    disk.stop();
    ASSERT_GT(disk.steps(), 4u);
    for (std::size_t steps = 0; steps <= disk.steps(); ++steps) {
      for (const Unsynced unsynced : ways) {
        const int rounds = unsynced == Unsynced::some ? 12 : 1;
        for (int round = 0; round < rounds; ++round) {
          const auto found = scratch_.path() / ("found" + std::to_string(++founds_));
          disk.folder_after(steps, unsynced, random_, found);
          SCOPED_TRACE(std::to_string(steps) + " of " + std::to_string(disk.steps()) +
                       " steps, unsynced " + std::to_string(int(unsynced)));
          check(found, steps == disk.steps());
          if (HasFailure()) return;
          std::filesystem::remove_all(found);
        }
      }
    }
  }

  rig::TempFolder scratch_{"/dev/shm"};
  std::filesystem::path folder_ = scratch_.path() / "now";
  std::filesystem::path file_ = folder_ / "list";
  SeededRandom random_;
  int founds_ = 0;
};

// Before it is used: what was not synced is lost, and what was synced is not.
TEST_F(PowerLossTest, RecorderKnowsWhatIsSafe) {
  fence_file();
  {
    RecordedDisk disk(folder_);
    ASSERT_TRUE(good(append(file_, 34, '2')));
    disk.stop();
    ASSERT_GT(disk.steps(), 10u);
    int old = 0;
    int fresh = 0;
    for (std::size_t steps = 0; steps <= disk.steps(); ++steps) {
      const auto found = scratch_.path() / ("look" + std::to_string(steps));
      disk.folder_after(steps, Unsynced::none, random_, found);
      (read_text(found / "list").value() == "33," ? old : fresh) += 1;
    }
    EXPECT_GT(old, 5);
    EXPECT_GT(fresh, 0);
  }
}

TEST_F(PowerLossTest, UpdateIsThereWithItsMarkOrNotAtAll) {
  fence_file();
  RecordedDisk disk(folder_);
  ASSERT_TRUE(good(append(file_, 34, '2')));
  cut_power(disk, [](const std::filesystem::path& folder, bool at_the_end) {
    const auto path = folder / "list";
    const std::int64_t mark = mark_of(path);
    const std::string content = read_text(path).value();
    EXPECT_EQ(content, mark == 34 ? "33,34," : "33,");
    if (at_the_end) {
      EXPECT_EQ(mark, 34) << "it was acknowledged";
    }
    EXPECT_TRUE(good(append(path, 35, '3')));
    EXPECT_EQ(read_text(path).value(), content + "35,");
  });
}

TEST_F(PowerLossTest, EntryIsNotForgotten) {
  fence_file();
  RecordedDisk disk(folder_);
  ASSERT_TRUE(good(Fence::open(file_)->enter(token_of(34, '2'))));
  cut_power(disk, [](const std::filesystem::path& folder, bool at_the_end) {
    const auto path = folder / "list";
    const std::int64_t mark = mark_of(path);
    EXPECT_TRUE(mark == 34 || (mark == 33 && !at_the_end)) << mark;
    EXPECT_EQ(append(path, 33, '1').has_value(), mark == 33);
  });
}

TEST_F(PowerLossTest, RefusalIsCountedForGood) {
  fence_file();
  RecordedDisk disk(folder_);
  ASSERT_TRUE(bad(append(file_, 32, '2'), ErrorCode::fenced_out));
  cut_power(disk, [](const std::filesystem::path& folder, bool at_the_end) {
    const auto mark = Fence::open(folder / "list")->mark();
    ASSERT_TRUE(good(mark));
    EXPECT_TRUE(mark->refused == 1 || (mark->refused == 0 && !at_the_end));
    EXPECT_EQ(mark->mark, token_of(33, '1'));
  });
}

TEST_F(PowerLossTest, FolderIsThereAsAWholeWithItsMarkOrNotAtAll) {
  const auto site = folder_ / "site";
  std::filesystem::create_directory(site);
  ASSERT_TRUE(good(install_fence(site)));
  ASSERT_TRUE(good(replace_folder(site, 33, '1')));
  RecordedDisk disk(folder_);
  ASSERT_TRUE(good(replace_folder(site, 34, '2')));
  cut_power(disk, [](const std::filesystem::path& folder, bool at_the_end) {
    const auto path = folder / "site";
    const std::int64_t mark = mark_of(path);
    EXPECT_TRUE(mark == 34 || (mark == 33 && !at_the_end)) << mark;
    EXPECT_EQ(read_text(path / kPage).value_or("none"), std::to_string(mark));
    EXPECT_TRUE(good(replace_folder(path, 35, '3')));
  });
}

TEST_F(PowerLossTest, InstallationOfAFileIsCompleteOrCanBeRepeated) {
  write_text(file_, "precious");
  RecordedDisk disk(folder_);
  ASSERT_TRUE(good(install_fence(file_)));
  cut_power(disk, [](const std::filesystem::path& folder, bool at_the_end) {
    expect_file_installed(folder / "list", at_the_end);
  });
}

// Its two renames are in the journal of the filesystem, in this order.
TEST_F(PowerLossTest, InstallationOfAFolderIsCompleteOrCanBeRepeated) {
  const auto site = folder_ / "site";
  std::filesystem::create_directory(site);
  write_text(site / "page", "precious");
  RecordedDisk disk(folder_);
  ASSERT_TRUE(good(install_fence(site)));
  cut_power(disk,
            [](const std::filesystem::path& folder, bool at_the_end) {
              expect_folder_installed(folder / "site", at_the_end);
            },
            {Unsynced::all});
}

// A writer fails at each of its syncs. Then another one comes, is answered, and the power goes.
TEST_F(PowerLossTest, NothingIsBuiltOnWhatIsNotSafe) {
  fence_file();
  for (int failing = 1;; ++failing) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    fence_file();
    RecordedDisk disk(folder_);
    disk.fail_sync = failing;
    const auto failed = append(file_, 34, '2');
    if (failed) {
      EXPECT_GT(failing, 4) << "no sync was made to fail";
      break;
    }
    const bool in_place = failed.error().code == ErrorCode::outcome_unknown;
    EXPECT_TRUE(in_place || failed.error().code == ErrorCode::unavailable);
    EXPECT_EQ(read_text(file_).value(), in_place ? "33,34," : "33,");
    ASSERT_TRUE(good(Fence::open(file_)->enter(token_of(35, '3'))));
    disk.stop();
    const auto found = scratch_.path() / ("after" + std::to_string(failing));
    disk.folder_after(disk.steps(), Unsynced::none, random_, found);
    EXPECT_EQ(mark_of(found / "list"), 35) << failing;
    EXPECT_EQ(read_text(found / "list").value(), in_place ? "33,34," : "33,") << failing;
  }
}

TEST_F(PowerLossTest, StageWhoseSyncFailedIsNotPublishedLater) {
  fence_file();
  auto next = Fence::open(file_)->stage();
  ASSERT_TRUE(good(next));
  write_text(next->path(), "staged");
  RecordedDisk disk(folder_);
  disk.fail_sync = 1;
  EXPECT_TRUE(bad(next->publish(token_of(34, '2')), ErrorCode::unavailable));
  EXPECT_TRUE(bad(next->publish(token_of(34, '2')), ErrorCode::invalid));
  EXPECT_EQ(read_text(file_).value(), "33,");
}

// ---- one is killed at any step or fails at any sync; then another one comes; then the power goes

class PairTest : public PowerLossTest {
 protected:
  using Act = std::function<Status(const std::filesystem::path&)>;
  using Look = std::function<void(const std::filesystem::path& found, bool answered)>;

  // `prepare` makes `path_` anew. `look` sees what is found there after the power was cut at each
  // step of `second`, and whether it had been answered.
  void each_pair(const Act& prepare, const Act& first, const Act& second, const Look& look,
                 std::initializer_list<Unsynced> ways = {Unsynced::none, Unsynced::all,
                                                         Unsynced::some}) {
    ways_ = ways;
    for (std::size_t steps = 0;; ++steps) {
      SCOPED_TRACE("the first is killed after " + std::to_string(steps) + " steps");
      const bool killed =
          pair(prepare, first, second, look, [&](RecordedDisk& disk) { disk.die_after(steps); });
      if (HasFailure() || !killed) break;
      ASSERT_LT(steps, 1000u);
    }
    for (int sync = 1;; ++sync) {
      SCOPED_TRACE("sync " + std::to_string(sync) + " of the first fails");
      const bool failed =
          pair(prepare, first, second, look, [&](RecordedDisk& disk) { disk.fail_sync = sync; });
      if (HasFailure() || !failed) break;
    }
    EXPECT_GT(pairs_, 100);
  }

  std::filesystem::path path_ = file_;

 private:
  // False if nothing happened to the first one.
  bool pair(const Act& prepare, const Act& first, const Act& second, const Look& look,
            const std::function<void(RecordedDisk&)>& strike) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    EXPECT_TRUE(good(prepare(path_)));
    RecordedDisk disk(folder_);
    strike(disk);
    (void)first(path_);
    const bool struck = disk.dead() || (disk.fail_sync > 0 && disk.syncs >= disk.fail_sync);
    disk.come();
    disk.fail_sync = 0;
    const std::size_t begin = disk.steps();
    EXPECT_TRUE(good(second(path_)));
    disk.stop();
    for (std::size_t steps = begin; steps <= disk.steps() && !HasFailure(); ++steps) {
      for (const Unsynced unsynced : ways_) {
        ++pairs_;
        const auto found = scratch_.path() / "found";
        disk.folder_after(steps, unsynced, random_, found);
        SCOPED_TRACE(std::to_string(steps - begin) + " of " + std::to_string(disk.steps() - begin) +
                     " steps of the second, unsynced " + std::to_string(int(unsynced)));
        look(found / path_.filename(), steps == disk.steps());
        std::filesystem::remove_all(found);
      }
    }
    return struck;
  }

  std::vector<Unsynced> ways_;
  int pairs_ = 0;
};

Status enter(const std::filesystem::path& path, std::int64_t number, char request) {
  const auto fence = TRY(Fence::open(path));
  return fence.enter(token_of(number, request)).map([](auto) {});
}

Status install(const std::filesystem::path& path) {
  return install_fence(path);
}

Status fenced_list(const std::filesystem::path& path) {
  write_text(path, "");
  if (auto ok = install_fence(path); !ok) return ok;
  return append(path, 33, '1');
}

Status be_refused(const std::filesystem::path& path) {
  const auto refused = append(path, 32, '0');
  if (!refused && refused.error().code == ErrorCode::fenced_out) return {};
  return fail(ErrorCode::internal, "a stale writer was let in");
}

Status adopt(const std::filesystem::path& path, std::int64_t at_least) {
  return adopt_lineage(path, token_of(33, '1').lineage, TokenNumber::of(at_least).value());
}

struct Deed {
  const char* name;
  Status (*act)(const std::filesystem::path&, std::int64_t number);
};
constexpr Deed kDeeds[] = {
    {"update", [](const auto& path, std::int64_t number) { return append(path, number, '2'); }},
    {"enter", [](const auto& path, std::int64_t number) { return enter(path, number, '2'); }},
    {"refusal", [](const auto& path, std::int64_t) { return be_refused(path); }},
    {"adoption", adopt},
    {"installation", [](const auto& path, std::int64_t) { return install(path); }},
};

class FilePairTest : public PairTest,
                     public ::testing::WithParamInterface<std::tuple<Deed, Deed>> {};

// What was answered is still so, and what was not leaves mark and data in agreement.
TEST_P(FilePairTest, AnswersOfTheSecondStay) {
  const Deed first = std::get<0>(GetParam());
  const Deed second = std::get<1>(GetParam());
  each_pair(
      fenced_list, [act = first.act](const auto& path) { return act(path, 34); },
      [act = second.act](const auto& path) { return act(path, 35); },
      [&](const std::filesystem::path& found, bool answered) {
        const std::string content = read_text(found).value();
        if (answered) {
          const auto then = Fence::open(found)->mark().value();
          const auto now = Fence::open(path_)->mark().value();
          EXPECT_EQ(then.mark, now.mark);
          EXPECT_EQ(then.refused, now.refused);
          EXPECT_EQ(content, read_text(path_).value());
          if (second.act == adopt) {
            EXPECT_TRUE(bad(append(found, 34, '2'), ErrorCode::fenced_out));
          }
        }
        const std::size_t last = content.rfind(',', content.size() - 2) + 1;
        EXPECT_TRUE(
            bad(append(found, std::stoll(content.substr(last)) - 1, '0'), ErrorCode::fenced_out));
        EXPECT_TRUE(good(append(found, 36, '4')));
        EXPECT_EQ(read_text(found).value(), content + "36,");
      });
}

INSTANTIATE_TEST_SUITE_P(EveryTwo, FilePairTest,
                         ::testing::Combine(::testing::ValuesIn(kDeeds, kDeeds + 3),
                                            ::testing::ValuesIn(kDeeds)),
                         [](const auto& two) {
                           return std::string(std::get<0>(two.param).name) + "_then_" +
                                  std::get<1>(two.param).name;
                         });

TEST_F(PairTest, FileOnceInstalledStaysInstalled) {
  each_pair(
      [](const auto& path) {
        write_text(path, "precious");
        return Status();
      },
      install, install, expect_file_installed);
}

TEST_F(PairTest, FolderOnceInstalledStaysInstalled) {
  path_ = folder_ / "site";
  each_pair(
      [](const auto& path) {
        std::filesystem::create_directory(path);
        write_text(path / "page", "precious");
        return Status();
      },
      install, install, expect_folder_installed, {Unsynced::all});
}

TEST_F(PairTest, FolderOnceReplacedStaysReplaced) {
  path_ = folder_ / "site";
  each_pair(
      [](const auto& path) {
        std::filesystem::create_directory(path);
        if (auto ok = install_fence(path); !ok) return ok;
        return replace_folder(path, 33, '1');
      },
      [](const auto& path) { return replace_folder(path, 34, '2'); },
      [](const auto& path) { return replace_folder(path, 35, '3'); },
      [](const std::filesystem::path& found, bool answered) {
        const std::int64_t mark = mark_of(found);
        EXPECT_TRUE(mark == 35 || (mark >= 33 && !answered)) << mark;
        EXPECT_EQ(read_text(found / kPage).value_or("none"), std::to_string(mark));
        EXPECT_TRUE(good(replace_folder(found, 36, '4')));
      });
}

}  // namespace
}  // namespace leasehold::files
