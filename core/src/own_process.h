// Whether this is still the process that began, or a forked child of it: without a system call.
#pragma once

#include <sys/types.h>

namespace leasehold::detail {

class OwnProcess {
 public:
  OwnProcess();
  ~OwnProcess();
  OwnProcess(const OwnProcess&) = delete;

  pid_t id() const { return id_; }
  bool is_forked_child() const;

 private:
  const pid_t id_;
  // A page that the kernel empties in a forked child. None if it cannot.
  unsigned char* const mark_;
};

}  // namespace leasehold::detail
