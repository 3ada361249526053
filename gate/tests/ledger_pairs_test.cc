// A gate is killed at any step, or fails at any sync. Then another one goes on from what it finds,
// and the power goes after any of its steps.
#include <gmock/gmock.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "fence_admin.h"
#include "ledger.h"
#include "rig/temp_folder.h"
#include "testing/recorded_disk.h"
#include "testing/results.h"
#include "testing/virtual_time.h"
#include "tokens.h"

namespace leasehold::gate {
namespace {

using leasehold::testing::good;
using leasehold::testing::RecordedDisk;
using leasehold::testing::Unsynced;

ResourceState state_with(std::int64_t number) {
  return {.mark = held_by(test_token(number, 1))};
}

std::int64_t mark_in(const ResourceStates& states) {
  const auto found = states.find(name("r"));
  return found == states.end() ? 0 : found->second.mark.threshold();
}

// One run of a gate, as far as its ledger goes.
class GateRun {
 public:
  explicit GateRun(const StateFolder& folder) {
    auto lock = FolderLock::take(folder);
    if (!lock) return;
    lock_.emplace(std::move(*lock));
    auto ledger =
        Ledger::open(folder, {.durable = [this](Version version) { tell(version, false); },
                              .failed = [this](const Error&) { tell(0, true); },
                              .compact_above = 1200,
                              .grow_by = 4096,
                              .sync = {}});
    if (ledger) ledger_ = std::move(*ledger);
  }
  ~GateRun() { ledger_.reset(); }  // while what it tells is there
  GateRun(const GateRun&) = delete;

  bool runs() const { return ledger_ != nullptr; }
  std::int64_t found() const { return mark_in(ledger_->states()); }

  // Returns when the mark may be acted upon; false if that will never be.
  bool raise(std::int64_t mark) {
    if (!ledger_) return false;
    const Version version = ledger_->write(name("r"), state_with(mark));
    std::unique_lock lock(mutex_);
    told_.wait(lock, [&] { return durable_ >= version || failed_; });
    return durable_ >= version;
  }

 private:
  void tell(Version version, bool failed) {
    const std::lock_guard lock(mutex_);
    durable_ = std::max(durable_, version);
    failed_ = failed_ || failed;
    told_.notify_all();
  }

  std::optional<FolderLock> lock_;
  std::mutex mutex_;
  std::condition_variable told_;
  Version durable_ = 0;
  bool failed_ = false;
  std::unique_ptr<Ledger> ledger_;
};

class LedgerPairTest : public ::testing::TestWithParam<bool> {
 protected:
  // What is promised from a step on: this mark, or a higher one, is found.
  struct Promise {
    std::size_t from;
    std::int64_t mark;
  };

  // False if nothing happened to the first gate.
  bool pair(const std::function<void(RecordedDisk&)>& strike) {
    const std::filesystem::path now = folder_.path() / "now";
    std::filesystem::remove_all(now);
    std::filesystem::create_directory(now);
    const StateFolder state{now / "state"};
    const bool used_before = GetParam();
    if (used_before) {
      EXPECT_TRUE(GateRun(state).raise(33));
    }
    RecordedDisk disk(now);
    std::vector<Promise> promises = {{0, used_before ? 33 : 0}};
    strike(disk);
    {
      GateRun first(state);
      for (const std::int64_t mark : {34, 35, 36}) {
        if (first.raise(mark)) promises.push_back({disk.steps(), mark});
      }
      if (disk.fail_sync == 0) disk.die_after(0);  // no tidy end
    }
    const bool struck = disk.fail_sync > 0 ? disk.syncs >= disk.fail_sync : promises.size() < 4;
    disk.come();
    disk.fail_sync = 0;
    const std::size_t begin = disk.steps();
    GateRun second(state);
    EXPECT_TRUE(second.runs());
    if (!second.runs()) return false;
    promises.push_back({disk.steps(), second.found()});
    for (const std::int64_t mark : {44, 45, 46}) {
      EXPECT_TRUE(second.raise(mark));
      promises.push_back({disk.steps(), mark});
    }
    disk.stop();
    for (std::size_t steps = begin; steps <= disk.steps() && !HasFailure(); ++steps) {
      look(disk, steps, promises);
    }
    return struck;
  }

  void look(const RecordedDisk& disk, std::size_t steps, const std::vector<Promise>& promises) {
    std::int64_t least = 0;
    for (const Promise& promise : promises) {
      if (promise.from <= steps) least = std::max(least, promise.mark);
    }
    for (const Unsynced unsynced : {Unsynced::none, Unsynced::all, Unsynced::some}) {
      SCOPED_TRACE("power cut after step " + std::to_string(steps) + " of " +
                   std::to_string(disk.steps()) + ", unsynced " + std::to_string(int(unsynced)));
      const std::filesystem::path cut = folder_.path() / "cut";
      disk.folder_after(steps, unsynced, random_, cut);
      const StateFolder state{cut / "state"};
      const auto image = read_ledger(state);
      EXPECT_TRUE(image || !std::filesystem::exists(state.ledger())) << "it is damaged";
      EXPECT_GE(image ? mark_in(image->states) : 0, least);
      std::filesystem::remove_all(cut);
      ++pairs_;
    }
  }

  leasehold::rig::TempFolder folder_{"/dev/shm"};
  leasehold::testing::SeededRandom random_{1};
  int pairs_ = 0;
};

TEST_P(LedgerPairTest, MarksThatTheSecondGateActedUponStay) {
  for (std::size_t steps = 0; !HasFailure(); ++steps) {
    SCOPED_TRACE("the first is killed after " + std::to_string(steps) + " steps");
    if (!pair([&](RecordedDisk& disk) { disk.die_after(steps); })) break;
  }
  for (int sync = 1; !HasFailure(); ++sync) {
    SCOPED_TRACE("sync " + std::to_string(sync) + " of the first fails");
    if (!pair([&](RecordedDisk& disk) { disk.fail_sync = sync; })) break;
  }
  EXPECT_GT(pairs_, 500);
}

INSTANTIATE_TEST_SUITE_P(Folder, LedgerPairTest, ::testing::Bool(), [](const auto& used_before) {
  return used_before.param ? "UsedBefore" : "New";
});

TEST(InstallPairTest, LedgerThatIsToldAsInstalledStays) {
  const leasehold::rig::TempFolder folder{"/dev/shm"};
  leasehold::testing::SeededRandom random{1};
  const std::filesystem::path now = folder.path() / "now";
  const auto install = [&] {
    return open_fence_admin(Url::parse("gate:" + (now / "state").string()).value())
        .value()
        ->install();
  };
  for (std::size_t killed = 0; !::testing::Test::HasFailure(); ++killed) {
    SCOPED_TRACE("the first is killed after " + std::to_string(killed) + " steps");
    std::filesystem::remove_all(now);
    std::filesystem::create_directory(now);
    RecordedDisk disk(now);
    disk.die_after(killed);
    (void)install();
    const bool was_killed = disk.dead();
    disk.come();
    ASSERT_TRUE(good(install()));
    disk.stop();
    disk.folder_after(disk.steps(), Unsynced::none, random, folder.path() / "cut");
    EXPECT_TRUE(good(read_ledger({folder.path() / "cut" / "state"})));
    std::filesystem::remove_all(folder.path() / "cut");
    if (!was_killed) break;
  }
}

}  // namespace
}  // namespace leasehold::gate
