#include "probe.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string_view>
#include <system_error>

#include "kit/system/fd.h"
#include "net/resolver.h"
#include "waiting/call_wait.h"

namespace leasehold::zookeeper {
namespace {

constexpr int kPatienceMs = 250;
constexpr auto kNamePatience = std::chrono::seconds(10);
constexpr std::size_t kMostWords = 120;

std::string words_of_errno(int number) {
  return std::generic_category().message(number);
}

std::string first_line(std::string_view text) {
  std::string line;
  for (const char c : text.substr(0, kMostWords)) {
    if (c == '\n' || c == '\r') break;
    line += c >= ' ' && c <= '~' ? c : '?';
  }
  return line;
}

// What the server says to "srvr": its version, or that it does not serve.
std::string ask_state(int fd) {
  constexpr std::string_view kQuestion = "srvr";
  if (send(fd, kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL) < 0) return words_of_errno(errno);
  pollfd readable{fd, POLLIN, 0};
  char buffer[512];
  if (poll(&readable, 1, kPatienceMs) <= 0) return "accepts connections, but says nothing";
  const ssize_t got = read(fd, buffer, sizeof buffer);
  if (got <= 0) return "accepts connections, and ends them";
  return "says '" + first_line({buffer, static_cast<std::size_t>(got)}) + "'";
}

struct State {
  std::string words;
  bool refuses = false;
};

State state_of(int error) {
  return {words_of_errno(error), error == ECONNREFUSED};
}

State state_of(const net::SocketAddress& address) {
  const kit::Fd fd(socket(address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return state_of(errno);
  const auto* bytes = reinterpret_cast<const sockaddr*>(&address.bytes);
  if (connect(fd.get(), bytes, address.size) != 0 && errno != EINPROGRESS) return state_of(errno);
  pollfd writable{fd.get(), POLLOUT, 0};
  if (poll(&writable, 1, kPatienceMs) <= 0) return {"does not accept connections"};
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error != 0 ? state_of(error) : State{ask_state(fd.get())};
}

// Of the first address that does not refuse.
State state_of(const HostPort& host) {
  const waiting::Alarm never;
  net::Resolver resolver;
  const auto addresses = resolver.resolve(host, {BootClock::now() + kNamePatience, {}}, never);
  if (!addresses) return {to_string(addresses.error())};
  State state;
  for (const net::SocketAddress& address : *addresses) {
    state = state_of(address);
    if (!state.refuses) break;
  }
  return state;
}

}  // namespace

HostStates states_of(const std::string& hosts, const std::function<bool()>& enough) {
  HostStates states{.words = "", .all_refuse = true};
  for (std::string_view rest = hosts; !rest.empty();) {
    if (enough && enough()) return {.words = std::move(states.words), .all_refuse = false};
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const std::size_t colon = one.rfind(':');
    std::string host(one.substr(0, colon));
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    const State state = state_of({std::move(host), std::string(one.substr(colon + 1))});
    if (!states.words.empty()) states.words += "; ";
    states.words += std::string(one) + ": " + state.words;
    states.all_refuse = states.all_refuse && state.refuses;
  }
  return states;
}

}  // namespace leasehold::zookeeper
