// Notices two living processes at one entity. The kernel gives each file's lock to one process, and
// takes it back when that dies.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "leasehold/detail/fd.h"

namespace leasehold::testing {

class EntityLocks {
 public:
  EntityLocks(const std::string& folder, const std::vector<std::string>& entities)
      : alarm_(open_file(folder + "/overlap", O_APPEND)) {
    for (const std::string& entity : entities) {
      files_.emplace(entity, open_file(folder + "/" + entity, 0));
    }
  }

  // A process that was killed may still hold its lock for a moment when a server has already
  // noticed its end. Such a one leaves its mark in the file; one that left by itself has taken the
  // mark away, and so was inside at the same time.
  void enter(const std::string& entity) {
    const int file = files_.at(entity).get();
    if (flock(file, LOCK_EX | LOCK_NB) != 0) {
      flock(file, LOCK_EX);
      if (lseek(file, 0, SEEK_END) == 0) tell("two at " + entity + "\n");
    }
    if (pwrite(file, "x", 1, 0) != 1) throw std::runtime_error("no mark");
  }
  void leave(const std::string& entity) {
    const int file = files_.at(entity).get();
    if (ftruncate(file, 0) != 0) throw std::runtime_error("the mark stays");
    flock(file, LOCK_UN);
  }

 private:
  static detail::Fd open_file(const std::string& path, int flags) {
    detail::Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600));
    if (file.get() < 0) throw std::runtime_error("cannot open " + path);
    return file;
  }
  void tell(const std::string& line) {
    if (write(alarm_.get(), line.data(), line.size()) < 0) throw std::runtime_error("no alarm");
  }

  detail::Fd alarm_;
  std::map<std::string, detail::Fd> files_;
};

}  // namespace leasehold::testing
