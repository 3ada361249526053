#include "machine.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

namespace leasehold::sqlite {
namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string machine_id() {
  if (const char* set = std::getenv("LEASEHOLD_MACHINE_ID"); set != nullptr && *set != '\0') {
    return set;
  }
  std::string id = first_line("/etc/machine-id");
  if (id == "uninitialized") id.clear();  // until its first boot, see machine-id(5)
  if (id.empty()) id = first_line("/var/lib/dbus/machine-id");
  return id;
}

// /proc/self/timens_offsets speaks of the namespace that children get: only of use when it is ours.
BootClock::duration time_namespace_offset() {
  struct stat own {};
  struct stat for_children {};
  const bool known = stat("/proc/self/ns/time", &own) == 0 &&
                     stat("/proc/self/ns/time_for_children", &for_children) == 0 &&
                     own.st_ino == for_children.st_ino;
  if (!known) return {};
  std::ifstream file("/proc/self/timens_offsets");
  std::string clock;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  while (file >> clock >> seconds >> nanoseconds) {
    if (clock == "boottime") {
      return std::chrono::seconds(seconds) + std::chrono::nanoseconds(nanoseconds);
    }
  }
  return {};
}

class HostBootClock final : public Clock {
 public:
  BootTime now() const override { return BootClock::now() - offset_; }

 private:
  const BootClock::duration offset_ = time_namespace_offset();
};

}  // namespace

Result<MachineIdentity> this_machine() {
  MachineIdentity identity{machine_id(), first_line("/proc/sys/kernel/random/boot_id")};
  if (identity.boot.empty()) {
    return fail(ErrorCode::unsupported,
                "/proc/sys/kernel/random/boot_id cannot be read, so the end of a lease across a "
                "reboot cannot be told");
  }
  if (identity.machine.empty()) {
    return fail(ErrorCode::unsupported,
                "this machine has no /etc/machine-id, so a file that another machine wrote could "
                "not be told; set LEASEHOLD_MACHINE_ID to a value that stays the same");
  }
  return identity;
}

const Clock& machine_clock() {
  static const HostBootClock clock;
  return clock;
}

}  // namespace leasehold::sqlite
