#include "leasehold/detail/conversation.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "kit/try.h"
#include "leasehold/detail/call_wait.h"
#include "leasehold/detail/fd.h"

namespace leasehold::detail {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

tl::unexpected<Error> broken(const HostPort& with, const std::string& what, std::string why) {
  return fail(ErrorCode::unavailable, with.host + ":" + with.port + ": " + what, std::move(why));
}

std::string words_of(int code) {
  return std::generic_category().message(code);
}

Result<Addresses> look_up(const HostPort& with) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(with.host.c_str(), with.port.c_str(), &hints, &list);
  if (code != 0) return broken(with, "the host is not known", gai_strerror(code));
  return Addresses(list);
}

Result<Fd> connect_to(const addrinfo& address, const HostPort& with, CallWait& wait) {
  Fd fd(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return broken(with, "cannot connect", words_of(errno));
  if (connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return broken(with, "cannot connect", words_of(errno));
  if (!wait.until_writable(fd.get())) return fail(wait.ended("connecting", /*sent=*/false));
  int code = 0;
  socklen_t size = sizeof code;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &code, &size);
  if (code != 0) return broken(with, "cannot connect", words_of(code));
  return fd;
}

Result<Fd> connect_to_any(const HostPort& with, CallWait& wait) {
  const auto addresses = TRY(look_up(with));
  Result<Fd> last = broken(with, "the host has no address", "");
  for (const addrinfo* it = addresses.get(); it != nullptr; it = it->ai_next) {
    last = connect_to(*it, with, wait);
    if (last || last.error().code == ErrorCode::cancelled) return last;
  }
  return last;
}

Status send_all(int fd, std::string_view bytes, const HostPort& with, CallWait& wait) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return broken(with, "cannot ask", words_of(errno));
    if (!wait.until_writable(fd)) return fail(wait.ended("asking", /*sent=*/false));
  }
  return {};
}

Result<std::string> receive_all(int fd, const HostPort& with, CallWait& wait) {
  std::string answer;
  char part[16384];
  for (;;) {
    const ssize_t got = recv(fd, part, sizeof part, 0);
    if (got == 0) return answer;
    if (got > 0) {
      answer.append(part, static_cast<std::size_t>(got));
      if (answer.size() > kLongestAnswer) return broken(with, "the answer is too long", "");
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return broken(with, "no answer", words_of(errno));
    if (!wait.until_readable(fd)) {
      return fail(wait.ended("waiting for an answer", /*sent=*/false));
    }
  }
}

}  // namespace

Result<std::string> converse(const HostPort& with, const std::string& question,
                             const CallContext& context) {
  const Alarm never;
  CallWait wait(context, never);
  const auto fd = TRY(connect_to_any(with, wait));
  TRY(send_all(fd.get(), question, with, wait));
  return receive_all(fd.get(), with, wait);
}

}  // namespace leasehold::detail
