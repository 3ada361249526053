// Notices two processes at one entity: the kernel gives each file's lock to one, and takes it back
// when that process dies.
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
  // Make it before any connection: a dying process closes low descriptors first, and must have let
  // go of these locks before a server can know of its death.
  EntityLocks(const std::string& folder, const std::vector<std::string>& entities)
      : alarm_(open_file(folder + "/overlap")) {
    for (const std::string& entity : entities) {
      files_.emplace(entity, open_file(folder + "/" + entity));
    }
  }

  void enter(const std::string& entity) {
    if (flock(files_.at(entity).get(), LOCK_EX | LOCK_NB) == 0) return;
    const std::string line = "two at " + entity + "\n";
    if (write(alarm_.get(), line.data(), line.size()) < 0) throw std::runtime_error("no alarm");
  }
  void leave(const std::string& entity) { flock(files_.at(entity).get(), LOCK_UN); }

 private:
  static detail::Fd open_file(const std::string& path) {
    detail::Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (file.get() < 0) throw std::runtime_error("cannot open " + path);
    return file;
  }

  detail::Fd alarm_;
  std::map<std::string, detail::Fd> files_;
};

}  // namespace leasehold::testing
