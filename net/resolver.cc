#include "net/resolver.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace leasehold::net {
namespace {

// How often a name that resolves slowly is interrupted to see whether the call must end.
constexpr Millis kLook{20};

std::vector<SocketAddress> addresses_in(const addrinfo* list) {
  std::vector<SocketAddress> addresses;
  for (const addrinfo* it = list; it != nullptr; it = it->ai_next) {
    SocketAddress address;
    std::memcpy(&address.bytes, it->ai_addr, it->ai_addrlen);
    address.size = it->ai_addrlen;
    address.family = it->ai_family;
    addresses.push_back(address);
  }
  return addresses;
}

bool raised(const waiting::Alarm& alarm) {
  pollfd polled{alarm.fd(), POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

Error not_found(const HostPort& host, int code) {
  return Error(ErrorCode::unavailable, "the host name '" + host.host + "' cannot be resolved",
               gai_strerror(code));
}

}  // namespace

struct Resolver::Lookup {
  explicit Lookup(HostPort wanted) : host(std::move(wanted)) {
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
    request.ar_name = host.host.c_str();
    request.ar_service = host.port.c_str();
    request.ar_request = &hints;
  }
  ~Lookup() {
    if (request.ar_result != nullptr) freeaddrinfo(request.ar_result);
  }
  Lookup(const Lookup&) = delete;
  bool ended() { return gai_error(&request) != EAI_INPROGRESS; }

  const HostPort host;
  addrinfo hints{};
  gaicb request{};
};

Resolver::Resolver() = default;
Resolver::~Resolver() {
  MutexLock lock(mutex_);
  for (auto& lookup : abandoned_) {
    // Better leak a few bytes when a client is closed than make it wait for a name server.
    if (!lookup->ended()) (void)lookup.release();
  }
}

void Resolver::abandon(std::unique_ptr<Lookup> lookup) {
  if (gai_cancel(&lookup->request) == EAI_CANCELED) return;
  MutexLock lock(mutex_);
  std::erase_if(abandoned_, [](const auto& it) { return it->ended(); });
  abandoned_.push_back(std::move(lookup));
}

Result<std::vector<SocketAddress>> Resolver::resolve(const HostPort& host,
                                                     const CallContext& context,
                                                     const waiting::Alarm& closing) {
  addrinfo numeric{};
  numeric.ai_socktype = SOCK_STREAM;
  numeric.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.host.c_str(), host.port.c_str(), &numeric, &found) == 0) {
    auto addresses = addresses_in(found);
    freeaddrinfo(found);
    return addresses;
  }

#ifdef __SANITIZE_THREAD__
  // glibc runs getaddrinfo_a on threads that ThreadSanitizer does not know, and it crashes there.
  numeric.ai_flags = 0;
  if (const int code = getaddrinfo(host.host.c_str(), host.port.c_str(), &numeric, &found)) {
    return fail(not_found(host, code));
  }
  auto addresses = addresses_in(found);
  freeaddrinfo(found);
  return addresses;
#endif

  auto lookup = std::make_unique<Lookup>(host);
  gaicb* list[] = {&lookup->request};
  if (const int code = getaddrinfo_a(GAI_NOWAIT, list, 1, nullptr); code != 0) {
    return fail(not_found(host, code));
  }
  const waiting::CallWait wait(context, closing);
  while (!lookup->ended()) {
    const bool over =
        context.stop.stop_requested() || raised(closing) || BootClock::now() >= context.deadline;
    if (over) {
      abandon(std::move(lookup));
      return fail(wait.ended("resolving the host name '" + host.host + "'", false));
    }
    const timespec pause{0, std::chrono::nanoseconds(kLook).count()};
    gai_suspend(list, 1, &pause);
  }
  if (const int code = gai_error(&lookup->request); code != 0) return fail(not_found(host, code));
  return addresses_in(lookup->request.ar_result);
}

}  // namespace leasehold::net
