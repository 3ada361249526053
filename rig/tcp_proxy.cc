#include "rig/tcp_proxy.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <list>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <arpa/inet.h>

#include "kit/threads/thread_safety.h"

namespace leasehold::rig {

using kit::Fd;

std::string to_string(WireFault fault) {
  switch (fault) {
    case WireFault::cut_before:
      return "cut_before";
    case WireFault::cut_during:
      return "cut_during";
    case WireFault::cut_after:
      return "cut_after";
    case WireFault::lose_reply:
      return "lose_reply";
  }
  return "?";
}

namespace {

constexpr std::size_t kChunk = 64 * 1024;

// Bytes on their way in one direction, each chunk with the time at which it may be passed on.
struct Pipeline {
  struct Chunk {
    std::string bytes;
    BootTime due;
  };
  std::deque<Chunk> chunks;
  bool ended = false;  // the sender will send no more
  bool told = false;   // and the receiver knows
};

struct Connection {
  Fd client;
  Fd server;
  Pipeline up;
  Pipeline down;
  bool swallow_replies = false;
  bool awaits_answer = false;
  bool broken = false;
};

void reset_on_close(int fd) {
  const linger hard{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
}

void without_delay(int fd) {
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

class TcpProxy::Loop {
 public:
  Loop(std::uint16_t target, IsRequest is_request, std::string host, const std::string& at)
      : target_(target),
        host_(std::move(host)),
        is_request_(is_request ? std::move(is_request)
                               : [](std::string_view bytes) { return !bytes.empty(); }),
        port_(Port::take()),
        is_ipv6_(at.find(':') != std::string::npos),
        listener_(
            socket(is_ipv6_ ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    const int yes = 1;
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (!bind_to(at) || listen(listener_.get(), 256) != 0) {
      throw std::runtime_error("the proxy cannot listen");
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  ~Loop() {
    thread_.request_stop();
    wake();
  }

  std::uint16_t port() const { return port_.number(); }
  std::string address() const { return is_ipv6_ ? "[::1]:" + port_.str() : port_.address(); }

  void arm(WireFault fault, IsRequest chosen) {
    MutexLock lock(mutex_);
    armed_ = fault;
    chosen_ = std::move(chosen);
    happened_ = false;
  }
  void disarm() {
    MutexLock lock(mutex_);
    armed_.reset();
  }
  bool wait_for_fault(Millis timeout) {
    MutexLock lock(mutex_);
    return changed_.wait_for(mutex_, timeout,
                             [this]() LEASEHOLD_REQUIRES(mutex_) { return happened_; });
  }
  void wait_for_connection() {
    MutexLock lock(mutex_);
    changed_.wait(mutex_, [this]() { return connections > 0; });
  }
  // Returns when the loop has done it.
  void cut() {
    MutexLock lock(mutex_);
    const std::size_t mine = ++cuts_wanted_;
    wake();
    changed_.wait(mutex_, [&]() LEASEHOLD_REQUIRES(mutex_) { return cuts_done_ >= mine; });
  }
  void refuse(bool on) {
    refuse_ = on;
    if (on) cut();
  }
  void hold(bool on) {
    hold_ = on;
    wake();
  }
  void retarget(std::uint16_t target) { target_ = target; }
  void delay(Millis each_way) {
    delay_ms_ = each_way.count();
    wake();
  }

  std::atomic<std::size_t> round_trips = 0;
  std::atomic<std::size_t> requests = 0;
  std::atomic<std::size_t> connections = 0;

 private:
  static sockaddr_in address_of(const std::string& host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    return address;
  }

  bool bind_to(const std::string& at) const {
    if (!is_ipv6_) {
      const sockaddr_in address = address_of(at, port_.number());
      return bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
             0;
    }
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port_.number());
    inet_pton(AF_INET6, at.c_str(), &address.sin6_addr);
    return bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Connection& it : open_) {
        polled.push_back({it.client.get(), wanted(it.up, it.down), 0});
        polled.push_back({it.server.get(), wanted(it.down, it.up), 0});
      }
      poll(polled.data(), polled.size(), milliseconds_to_next());
      drain_wake(polled[0]);
      cut_if_told();
      std::size_t i = 2;
      for (Connection& it : open_) {
        serve(it, polled[i].revents, polled[i + 1].revents);
        i += 2;
      }
      open_.remove_if([](const Connection& it) { return it.broken; });
      if (polled[1].revents != 0) accept_all();
    }
    for (Connection& it : open_) break_off(it);
  }

  void drain_wake(const pollfd& polled) {
    std::uint64_t count = 0;
    if (polled.revents != 0 && read(wake_.get(), &count, sizeof count) < 0) return;
  }

  // `from`: what this side sends; `to`: what goes to it.
  short wanted(const Pipeline& from, const Pipeline& to) const {
    if (hold_) return 0;
    const bool writes = !to.chunks.empty() && to.chunks.front().due <= BootClock::now();
    return static_cast<short>((from.ended ? 0 : POLLIN) | (writes ? POLLOUT : 0));
  }

  int milliseconds_to_next() const {
    std::optional<BootTime> next;
    for (const Connection& it : open_) {
      for (const Pipeline* line : {&it.up, &it.down}) {
        if (line->chunks.empty()) continue;
        next = std::min(next.value_or(line->chunks.front().due), line->chunks.front().due);
      }
    }
    if (!next || hold_) return -1;
    const auto left = std::chrono::ceil<Millis>(*next - BootClock::now());
    return static_cast<int>(std::max<Millis>(left, Millis(0)).count());
  }

  void cut_if_told() {
    MutexLock lock(mutex_);
    if (cuts_done_ == cuts_wanted_) return;
    for (Connection& it : open_) break_off(it);
    cuts_done_ = cuts_wanted_;
    changed_.notify_all();
  }

  void count_connection() {
    MutexLock lock(mutex_);
    ++connections;
    changed_.notify_all();
  }

  void accept_all() {
    for (;;) {
      Fd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (client.get() < 0) return;
      count_connection();
      reset_on_close(client.get());
      if (refuse_) continue;
      Fd server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const sockaddr_in address = address_of(host_, target_);
      if (connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        continue;  // the client sees a reset, as from a host without the server
      }
      without_delay(client.get());
      without_delay(server.get());
      open_.push_back({std::move(client), std::move(server), {}, {}});
    }
  }

  void serve(Connection& it, short client_events, short server_events) {
    if (it.broken) return;
    if ((client_events & (POLLIN | POLLHUP | POLLERR)) != 0) from_client(it);
    if (!it.broken && (server_events & (POLLIN | POLLHUP | POLLERR)) != 0) from_server(it);
    if (!it.broken) pass_on(it, it.up, it.server.get());
    if (!it.broken) pass_on(it, it.down, it.client.get());
    const bool over = it.up.told && it.down.told;
    if (over) it.broken = true;
  }

  // Nothing at the end of the stream; breaks the connection on an error.
  static std::optional<std::string> receive(Connection& it, int fd, Pipeline& line) {
    std::string bytes(kChunk, '\0');
    const ssize_t got = read(fd, bytes.data(), bytes.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    if (got < 0) {
      break_off(it);
      return std::nullopt;
    }
    if (got == 0) {
      line.ended = true;
      return std::nullopt;
    }
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }

  BootTime due() const { return BootClock::now() + Millis(delay_ms_.load()); }

  void from_client(Connection& it) {
    auto bytes = receive(it, it.client.get(), it.up);
    if (!bytes) return;
    if (!is_request_(*bytes)) {
      it.up.chunks.push_back({std::move(*bytes), due()});
      return;
    }
    ++requests;
    it.awaits_answer = true;
    const auto fault = fault_for(*bytes);
    if (fault == WireFault::cut_before) return break_off(it);
    if (fault == WireFault::cut_during) bytes->resize(bytes->size() / 2);
    it.up.chunks.push_back({std::move(*bytes), due()});
    if (!fault) return;
    if (*fault == WireFault::lose_reply) {
      it.swallow_replies = true;
      return;
    }
    flush_up(it);
    break_off(it);
  }

  // What was sent must arrive before the reset overtakes it: the server side ends in an orderly
  // way.
  static void flush_up(Connection& it) {
    for (const Pipeline::Chunk& chunk : it.up.chunks) {
      [[maybe_unused]] const ssize_t sent =
          send(it.server.get(), chunk.bytes.data(), chunk.bytes.size(), MSG_NOSIGNAL);
    }
    it.up.chunks.clear();
  }

  std::optional<WireFault> fault_for(std::string_view bytes) {
    MutexLock lock(mutex_);
    if (!armed_ || (chosen_ && !chosen_(bytes))) return std::nullopt;
    const WireFault fault = *armed_;
    armed_.reset();
    happened_ = true;
    changed_.notify_all();
    return fault;
  }

  void from_server(Connection& it) {
    auto bytes = receive(it, it.server.get(), it.down);
    if (!bytes) return;
    if (it.awaits_answer) {
      it.awaits_answer = false;
      ++round_trips;
    }
    if (!it.swallow_replies) it.down.chunks.push_back({std::move(*bytes), due()});
  }

  void pass_on(Connection& it, Pipeline& line, int fd) {
    const BootTime now = BootClock::now();
    while (!hold_ && !line.chunks.empty() && line.chunks.front().due <= now) {
      std::string& bytes = line.chunks.front().bytes;
      const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (sent < 0) return break_off(it);
      bytes.erase(0, static_cast<std::size_t>(sent));
      if (!bytes.empty()) return;
      line.chunks.pop_front();
    }
    if (line.ended && !line.told && line.chunks.empty()) {
      line.told = true;
      shutdown(fd, SHUT_WR);
    }
  }

  static void break_off(Connection& it) {
    reset_on_close(it.client.get());
    it.client = Fd();
    it.server = Fd();
    it.broken = true;
  }

  std::atomic<std::uint16_t> target_;
  const std::string host_;
  const IsRequest is_request_;
  const Port port_;
  const bool is_ipv6_;
  const Fd listener_;
  const Fd wake_;
  std::atomic<bool> refuse_ = false;
  std::atomic<bool> hold_ = false;
  std::atomic<Millis::rep> delay_ms_ = 0;

  Mutex mutex_;
  ConditionVariable changed_;
  std::optional<WireFault> armed_ LEASEHOLD_GUARDED_BY(mutex_);
  IsRequest chosen_ LEASEHOLD_GUARDED_BY(mutex_);
  bool happened_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::size_t cuts_wanted_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  std::size_t cuts_done_ LEASEHOLD_GUARDED_BY(mutex_) = 0;

  std::list<Connection> open_;  // used by the thread alone
  std::jthread thread_;
};

TcpProxy::TcpProxy(std::uint16_t target, IsRequest is_request, std::string host,
                   const std::string& at)
    : loop_(std::make_unique<Loop>(target, std::move(is_request), std::move(host), at)) {}
TcpProxy::~TcpProxy() = default;

std::string TcpProxy::address() const {
  return loop_->address();
}

std::uint16_t TcpProxy::port() const {
  return loop_->port();
}
void TcpProxy::arm(WireFault fault, IsRequest chosen) {
  loop_->arm(fault, std::move(chosen));
}
bool TcpProxy::wait_for_fault(Millis timeout) {
  return loop_->wait_for_fault(timeout);
}
void TcpProxy::disarm() {
  loop_->disarm();
}
void TcpProxy::cut() {
  loop_->cut();
}
void TcpProxy::refuse(bool on) {
  loop_->refuse(on);
}
void TcpProxy::hold(bool on) {
  loop_->hold(on);
}
void TcpProxy::retarget(std::uint16_t target) {
  loop_->retarget(target);
}

void TcpProxy::delay(Millis each_way) {
  loop_->delay(each_way);
}
std::size_t TcpProxy::round_trips() const {
  return loop_->round_trips;
}
std::size_t TcpProxy::requests() const {
  return loop_->requests;
}
std::size_t TcpProxy::connections() const {
  return loop_->connections;
}
void TcpProxy::wait_for_connection() {
  loop_->wait_for_connection();
}

}  // namespace leasehold::rig
