// A disk whose every write and sync is known: what would be left of its files after a power cut,
// and what happens when it fails.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
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

  // SQLite error codes to answer from now on; 0: works.
  int fail_sync = 0;
  int fail_write = 0;
  bool ignore_syncs = false;
  bool record = true;

  struct Step {
    enum class Kind { write, truncate, sync, failed_sync, remove } kind;
    std::string file;
    std::int64_t offset = 0;
    std::vector<char> data = {};
  };
  std::vector<Step> steps_;

 private:
  struct Vfs;
  std::unique_ptr<Vfs> vfs_;
};

}  // namespace leasehold::sqlite::testing
