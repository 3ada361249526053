// Whether a thread of this process waits for something, so that a test need not guess how long.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace leasehold::testing {

inline bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string number, name, state;
  file >> number >> name >> state;
  return state == "S";
}

}  // namespace leasehold::testing
