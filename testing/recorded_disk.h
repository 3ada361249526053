// A disk whose every change and sync by the library is known: what would be left of a folder after
// a power cut. The library's system calls are led here by the linker (--wrap).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kit/system/fd.h"
#include "leasehold/random.h"

namespace leasehold::testing {

// What survives of the changes that were not synced.
enum class Unsynced {
  none,
  all,   // of names; of a file's content only what was synced
  some,  // each name and each content for itself
};

// Records from its making until it is stopped. One at a time; not thread safe.
class RecordedDisk {
 public:
  explicit RecordedDisk(const std::filesystem::path& folder);
  ~RecordedDisk();
  RecordedDisk(const RecordedDisk&) = delete;
  void stop();

  // How many system calls have changed or synced something.
  std::size_t steps() const { return steps_.size() - begin_; }

  // Writes the folder into `to` as it would be found if the power had gone after `steps` steps.
  void folder_after(std::size_t steps, Unsynced unsynced, Random& random,
                    const std::filesystem::path& to) const;

  // The sync with this number, counted from 1 from now on, fails with EIO; 0: none does. What a
  // file had before a failed sync stays in the cache and never reaches the disk, as in real
  // kernels.
  int fail_sync = 0;
  int syncs = 0;

  // After so many steps from now on whoever makes them is dead: none of its calls has an effect any
  // more. Until another one comes.
  void die_after(std::size_t steps) { dead_from_ = steps_.size() + steps; }
  void come() { dead_from_ = SIZE_MAX; }

  // ---- for the wrapped calls
  // ----------------------------------------------------------------------
  static RecordedDisk* active();
  bool dead() const { return steps_.size() >= dead_from_; }
  void named(int folder, const char* name);
  void unnamed(int folder, const char* name);
  void renamed(int from, const char* old_name, int to, const char* new_name);
  void written(int file);
  bool sync_fails();
  void synced(int fd, bool good);

 private:
  using Node = ino_t;
  struct Change {
    enum class Kind { name, content, sync, failed_sync } kind;
    Node node = 0;          // the folder or file that changes
    std::string text = {};  // the name, or the content
    Node target = 0;        // what the name leads to; 0: nothing
  };
  struct Thing {
    mode_t mode = 0;
    std::string link;  // where a symbolic link leads
    kit::Fd keep;      // as long as it is open, its number is not given to another
  };

  Node learn(int folder, const char* name);
  Node learn_fd(int fd);
  void scan(int folder);
  std::vector<Change> all_of(int fd);
  void note(std::vector<Change> step) { steps_.push_back(std::move(step)); }

  std::map<Node, Thing> things_;
  std::vector<std::vector<Change>> steps_;
  std::size_t begin_ = 0;
  std::size_t dead_from_ = SIZE_MAX;
  Node root_ = 0;
};

}  // namespace leasehold::testing
