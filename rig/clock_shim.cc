#include "rig/clock_shim.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "kit/system/fd.h"

namespace leasehold::rig {

ClockShim::ClockShim(std::string library) : library_(std::move(library)) {
  if (!std::filesystem::exists(library_)) throw std::runtime_error(library_ + " is missing");
  // A server may run as another user.
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all |
                                                   std::filesystem::perms::group_exec |
                                                   std::filesystem::perms::others_exec);
  move(std::chrono::seconds(0));
  std::filesystem::permissions(folder_.file("offset"), std::filesystem::perms::owner_read |
                                                           std::filesystem::perms::owner_write |
                                                           std::filesystem::perms::group_read |
                                                           std::filesystem::perms::others_read);
}

ClockShim::Environment ClockShim::environment() const {
  return {{"LD_PRELOAD", library_}, {"LEASEHOLD_CLOCK_OFFSET", folder_.file("offset")}};
}

void ClockShim::move(std::chrono::seconds by) {
  // The same file, since the servers have it mapped.
  const kit::Fd file(open(folder_.file("offset").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  const long long seconds = by.count();
  if (!file || pwrite(file.get(), &seconds, sizeof seconds, 0) != sizeof seconds) {
    throw std::runtime_error("the clock cannot be moved");
  }
}

}  // namespace leasehold::rig
