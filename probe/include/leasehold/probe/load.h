// Threads that do nothing but compete for the processors.
#pragma once

#include <thread>
#include <vector>

namespace leasehold::probe {

class Load {
 public:
  // Throws std::system_error if the system has no more threads; none is left then.
  explicit Load(int threads);

 private:
  std::vector<std::jthread> threads_;  // stopped and joined at the end
};

}  // namespace leasehold::probe
