// The order of this client's calls, and which of them may still be on their way.
#pragma once

#include <atomic>
#include <cstdint>

#include "store_base/doubts.h"

namespace leasehold::redis {

// Calls are numbered, and the release of a doubtful request leaves its number at the server, where
// the late acquire finds it. Thread safe.
class CallLog : public Doubts {
 public:
  std::int64_t next_number() { return ++last_; }

 private:
  std::atomic<std::int64_t> last_ = 0;
};

}  // namespace leasehold::redis
