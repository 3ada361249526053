#include "net/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace leasehold::net {
namespace {

using kit::Fd;
using waiting::CallWait;

// A server that vanishes without closing its connections is noticed after about this many seconds.
constexpr int kSilentSeconds = 15;

void set(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

void tune(int fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kSilentSeconds / 3);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kSilentSeconds / 3);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 2);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kSilentSeconds * 1000);
}

// For a connected socket only: connecting may take long.
Fd let_block_shortly(Fd fd) {
  const timeval limit{.tv_sec = 0, .tv_usec = std::chrono::microseconds(kShortWait).count()};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  return fd;
}

tl::unexpected<Error> refused(int code) {
  return fail(ErrorCode::unavailable, "cannot connect", std::generic_category().message(code));
}

Result<Fd> connect_to(const SocketAddress& address, CallWait& wait) {
  Fd fd(socket(address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return refused(errno);
  tune(fd.get());
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.size) == 0) {
    return let_block_shortly(std::move(fd));
  }
  if (errno != EINPROGRESS) return refused(errno);
  if (!wait.until_writable(fd.get())) return fail(wait.ended("connecting", false));
  int code = 0;
  socklen_t size = sizeof code;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &code, &size);
  if (code != 0) return refused(code);
  return let_block_shortly(std::move(fd));
}

}  // namespace

Result<Fd> connect_to_any(const std::vector<SocketAddress>& addresses, const CallContext& context,
                          const waiting::Alarm& closing) {
  Result<Fd> fd = fail(ErrorCode::unavailable, "the host name has no address");
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    // An address that is silent must leave time for the next one.
    const BootTime now = BootClock::now();
    const auto share = (context.deadline - now) / static_cast<int>(addresses.size() - i);
    const CallContext part{std::min(context.deadline, now + share), context.stop};
    CallWait wait(part, closing);
    fd = connect_to(addresses[i], wait);
    if (fd || fd.error().code == ErrorCode::cancelled) return fd;
  }
  return fd;
}

}  // namespace leasehold::net
