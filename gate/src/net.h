// asio as the gate uses it: one thread, coroutines, connections that do not wait for ever.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "head.h"

namespace leasehold::gate {

using asio::ip::tcp;
template <class T>
using Async = asio::awaitable<T>;

using NetClock = std::chrono::steady_clock;
using NetTime = NetClock::time_point;

// Something that happens once, for a coroutine to wait for.
class Event {
 public:
  explicit Event(asio::io_context& io) : timer_(io, NetTime::max()) {}

  void set();
  bool is_set() const { return set_; }
  Async<void> wait();

 private:
  asio::steady_timer timer_;
  bool set_ = false;
};

// When the process has as many files open as it may, before it tries again.
inline constexpr std::chrono::milliseconds kPauseWithoutFiles{100};

Async<void> pause(asio::io_context& io, std::chrono::milliseconds time);

class Connection;

// Closes connections that have waited too long. Everything on one thread.
class Watch {
 public:
  void sweep(NetTime now);
  // For good: what is opened later is closed too.
  void close_all();
  bool is_closed() const { return closed_; }

 private:
  friend class Connection;
  std::list<Connection*> connections_;
  bool closed_ = false;
};

// A socket with what was read from it and not used yet.
class Connection {
 public:
  Connection(tcp::socket socket, Watch& watch);
  ~Connection();
  Connection(const Connection&) = delete;

  // Each of these waits until `by`; then the connection is closed, and timed_out().
  Async<std::error_code> connect(tcp::endpoint endpoint, NetTime by);
  // Reads more behind what is there, at most 64 KiB in all.
  Async<std::error_code> fill(NetTime by);
  std::string_view in() const { return {buffer_.data() + begin_, end_ - begin_}; }
  void consume(std::size_t size) { begin_ += size; }

  struct Sent {
    std::error_code error;
    std::size_t bytes = 0;
  };
  // All of it, unless it fails.
  Async<Sent> send(std::string_view text, NetTime by);
  Async<Sent> send(std::array<std::string_view, 3> texts, NetTime by);

  bool timed_out() const { return timed_out_; }
  // Whoever waits for input may go on waiting until `by`.
  void postpone(NetTime by) {
    if (read_by_ != NetTime::max()) read_by_ = std::max(read_by_, by);
  }

  // Ends whatever is waited for.
  void cancel();
  void close();
  // The other side shall not take what it got for complete.
  void close_abruptly();
  void end_of_sending();

  // Without waiting: has the other side closed, or sent what nobody asked for?
  bool is_quiet() const;
  bool has_hung_up() const;

  tcp::socket& socket() { return socket_; }

 private:
  friend class Watch;

  tcp::socket socket_;
  Watch& watch_;
  std::list<Connection*>::iterator place_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  NetTime read_by_ = NetTime::max();
  NetTime write_by_ = NetTime::max();
  bool timed_out_ = false;
};

// How long to wait for a client: no pause of `timeout`, and on average no less than 4 KiB/s. Only
// the time counts that was spent waiting for it.
class Pace {
 public:
  explicit Pace(std::chrono::milliseconds timeout) : timeout_(timeout) {}

  // Waiting begins now, and has to end then.
  NetTime wait();
  // It has ended, after so many bytes.
  void done(std::size_t bytes);

 private:
  std::chrono::milliseconds timeout_;
  NetTime began_;
  NetClock::duration waited_{};
  std::uint64_t bytes_ = 0;
};

// The head at the front of the connection's input.
struct HeadRead {
  std::size_t size = 0;
  std::optional<BadMessage> bad;
  std::error_code error;
};
Async<HeadRead> read_head(Connection& connection, NetTime by);

}  // namespace leasehold::gate
