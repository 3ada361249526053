// Host names to addresses, within a deadline.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "kit/threads/thread_safety.h"
#include "leasehold/error.h"
#include "leasehold/url.h"
#include "waiting/call_wait.h"

namespace leasehold::net {

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  int family = 0;
};

// Thread safe.
class Resolver {
 public:
  Resolver();
  ~Resolver();

  // `unavailable` or `cancelled`.
  [[nodiscard]] Result<std::vector<SocketAddress>> resolve(const HostPort& host,
                                                           const CallContext& context,
                                                           const waiting::Alarm& closing);

 private:
  struct Lookup;
  void abandon(std::unique_ptr<Lookup> lookup) LEASEHOLD_EXCLUDES(mutex_);

  Mutex mutex_;
  // glibc still works on these, and cannot be told to stop.
  std::vector<std::unique_ptr<Lookup>> abandoned_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::net
