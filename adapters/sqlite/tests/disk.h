// A disk whose every write and sync is known: what would be left of its files after a power cut,
// and what happens when it fails.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/random.h"

namespace leasehold::sqlite::testing {

// What survives of the writes that were not synced.
enum class Unsynced { none, all, torn, some };

// A SQLite VFS over the real one. One at a time; not thread safe.
class Disk {
 public:
  Disk();
  ~Disk();
  Disk(const Disk&) = delete;

  const char* name() const;

  // After a failed sync the writes before it stay in the cache and never reach the disk, as kernels
  // do it.

  // How many writes, truncations, syncs and deletions there were.
  std::size_t steps() const { return steps_.size(); }

  // Writes the files as they would be found if the power had gone after `steps` steps. Shared
  // memory is not on disk.
  void files_after(std::size_t steps, Unsynced unsynced, Random& random,
                   const std::string& from_folder, const std::string& to_folder) const;

  // What happens to the process that takes a certain step.
  enum class Fault {
    kill,       // it is killed before the step: nothing that it still tries has an effect
    lost_sync,  // the step, a sync, fails, and what it should have written never reaches the disk
    late_sync,  // it fails, but a later one still writes it
  };
  void strike_at(std::size_t step, Fault fault) { strike_ = Strike{step, fault}; }
  // From now on another process is at work.
  void next_process() {
    strike_.reset();
    dead_ = false;
  }

  // SQLite error codes to answer from now on; 0: works.
  int fail_sync = 0;
  std::string fail_sync_of = {};  // only of files whose names end so
  int fail_write = 0;
  std::string fail_write_of = {};
  bool ignore_syncs = false;
  bool record = true;

  struct Step {
    enum class Kind { write, truncate, sync, failed_sync, remove } kind;
    std::string file;
    std::int64_t offset = 0;
    std::vector<char> data = {};
  };
  std::vector<Step> steps_;

  // What the next step is to answer; 0: it is done.
  int answer_to(Step::Kind kind, const char* file);

 private:
  struct Vfs;
  struct Strike {
    std::size_t step;
    Fault fault;
  };
  std::optional<Strike> strike_;
  bool dead_ = false;
  std::unique_ptr<Vfs> vfs_;
};

}  // namespace leasehold::sqlite::testing
