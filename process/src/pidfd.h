// glibc 2.36 declares these without C linkage, so C++ cannot link them.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace leasehold::process {

inline int open_pidfd(pid_t pid) {
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

inline int signal_pidfd(int pidfd, int number) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, 0));
}

}  // namespace leasehold::process
