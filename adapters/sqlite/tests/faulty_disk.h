// What two faults may do together: one process is killed, or its disk fails once, at any step;
// another goes on; then the power goes.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "disk.h"
#include "rig/temp_folder.h"
#include "testing/virtual_time.h"

namespace leasehold::sqlite::testing {

class FaultyDiskTest : public ::testing::Test {
 protected:
  struct Span {
    std::size_t from;
    std::size_t to;
  };
  // Begins with nothing; the steps of the process that is to be struck. It calls
  // disk.next_process() when that has gone.
  using Story = std::function<Span()>;
  // What must hold of the files in folder "cut", if the power went after so many steps.
  using Check = std::function<void(std::size_t step, Disk::Fault fault)>;

  std::string work(const std::string& file) { return folder.file("work/" + file); }
  std::string cut(const std::string& file) { return folder.file("cut/" + file); }

  void strike_everywhere(const Story& story, const Check& check,
                         const std::vector<Disk::Fault>& faults) {
    disk.ignore_syncs = true;  // the real disk underneath is not what is tested
    const Span span = tell(story);
    std::vector<bool> is_sync;
    for (const auto& step : disk.steps_) is_sync.push_back(step.kind == Disk::Step::Kind::sync);
    for (std::size_t step = span.from; step < span.to; ++step) {
      for (const Disk::Fault fault : faults) {
        if (fault != Disk::Fault::kill && !is_sync[step]) continue;
        SCOPED_TRACE("fault " + std::to_string(static_cast<int>(fault)) + " at step " +
                     std::to_string(step));
        disk.strike_at(step, fault);
        tell(story);
        cut_power_everywhere_after(step, fault, check);
        if (HasFatalFailure()) return;
      }
    }
    EXPECT_GT(cuts_, 10);
  }

  leasehold::testing::SeededRandom random{7};
  Disk disk;
  leasehold::rig::TempFolder folder;

 private:
  Span tell(const Story& story) {
    std::filesystem::remove_all(folder.file("work"));
    std::filesystem::create_directories(folder.file("work"));
    disk.steps_.clear();
    return story();
  }

  // Between two syncs nothing more reaches the disk for certain, and more is promised.
  void cut_power_everywhere_after(std::size_t first, Disk::Fault fault, const Check& check) {
    disk.record = false;
    for (std::size_t step = first; step <= disk.steps() && !HasFatalFailure(); ++step) {
      const bool before_a_sync =
          step == disk.steps() || disk.steps_[step].kind == Disk::Step::Kind::sync;
      if (!before_a_sync) continue;
      SCOPED_TRACE("the power goes after step " + std::to_string(step));
      const auto unsynced = random.next() % 4 == 0 ? Unsynced::some : Unsynced::none;
      disk.files_after(step, unsynced, random, folder.file("work"), folder.file("cut"));
      check(step, fault);
      ++cuts_;
    }
    disk.record = true;
  }

  int cuts_ = 0;
};

}  // namespace leasehold::sqlite::testing
