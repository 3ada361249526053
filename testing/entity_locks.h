// Notices two living processes at one entity. The kernel gives each file's lock to one process, and
// takes it back when that dies: a lock of this kind before it closes any socket, so that a server
// which has noticed the end of a worker cannot be earlier.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "kit/system/fd.h"

namespace leasehold::testing {

class EntityLocks {
 public:
  EntityLocks(const std::string& folder, const std::vector<std::string>& entities)
      : alarm_(open_file(folder + "/overlap", O_APPEND)) {
    for (const std::string& entity : entities) {
      files_.emplace(entity, open_file(folder + "/" + entity, 0));
    }
  }

  void enter(const std::string& entity) {
    const int file = files_.at(entity).get();
    if (set_lock(file, F_SETLK, F_WRLCK)) return;
    tell("two at " + entity + "\n");
    set_lock(file, F_SETLKW, F_WRLCK);
  }
  void leave(const std::string& entity) { set_lock(files_.at(entity).get(), F_SETLK, F_UNLCK); }

 private:
  static kit::Fd open_file(const std::string& path, int flags) {
    kit::Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600));
    if (file.get() < 0) throw std::runtime_error("cannot open " + path);
    return file;
  }
  static bool set_lock(int file, int command, short type) {
    struct flock lock = {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return fcntl(file, command, &lock) == 0;
  }
  void tell(const std::string& line) {
    if (write(alarm_.get(), line.data(), line.size()) < 0) throw std::runtime_error("no alarm");
  }

  kit::Fd alarm_;
  std::map<std::string, kit::Fd> files_;
};

}  // namespace leasehold::testing
