#include "net/conversation.h"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "kit/try.h"
#include "net/resolver.h"
#include "net/socket.h"

namespace leasehold::net {
namespace {

tl::unexpected<Error> broken(const HostPort& with, const std::string& what, std::string why) {
  return fail(ErrorCode::unavailable, with.host + ":" + with.port + ": " + what, std::move(why));
}

std::string words_of(int code) {
  return std::generic_category().message(code);
}

Status send_all(int fd, std::string_view bytes, const HostPort& with, waiting::CallWait& wait) {
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

Result<std::string> receive_all(int fd, const HostPort& with, waiting::CallWait& wait) {
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
  const waiting::Alarm never;
  Resolver resolver;
  auto fd = resolver.resolve(with, context, never).and_then([&](const auto& addresses) {
    return connect_to_any(addresses, context, never);
  });
  if (!fd) {
    fd.error().message = with.host + ":" + with.port + ": " + fd.error().message;
    return fail(std::move(fd.error()));
  }
  waiting::CallWait wait(context, never);
  TRY(send_all(fd->get(), question, with, wait));
  return receive_all(fd->get(), with, wait);
}

}  // namespace leasehold::net
