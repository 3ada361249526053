// The order of this client's calls.
#pragma once

#include <atomic>
#include <cstdint>

namespace leasehold::redis {

// The release of a doubtful request leaves its number at the server, where the late acquire, whose
// number is lower, finds it. Thread safe.
class CallNumbers {
 public:
  std::int64_t next() { return ++last_; }

 private:
  std::atomic<std::int64_t> last_ = 0;
};

}  // namespace leasehold::redis
