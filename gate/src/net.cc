#include "net.h"

#include <sys/socket.h>

#include <algorithm>
#include <asio/write.hpp>
#include <cerrno>
#include <cstring>

namespace leasehold::gate {
namespace {

constexpr std::size_t kFirstBuffer = 16 * 1024;
constexpr std::size_t kMaxBuffer = 64 * 1024;
constexpr std::uint64_t kSlowest = 4096;  // bytes per second

}  // namespace

void Event::set() {
  set_ = true;
  timer_.cancel();
}

Async<void> Event::wait() {
  std::error_code ignored;
  while (!set_) co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

Async<void> pause(asio::io_context& io, std::chrono::milliseconds time) {
  asio::steady_timer timer(io, time);
  std::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

void Watch::sweep(NetTime now) {
  for (Connection* const connection : connections_) {
    if (now < connection->read_by_ && now < connection->write_by_) continue;
    connection->timed_out_ = true;
    connection->close();
  }
}

void Watch::close_all() {
  closed_ = true;
  for (Connection* const connection : connections_) connection->close();
}

Connection::Connection(tcp::socket socket, Watch& watch)
    : socket_(std::move(socket)), watch_(watch) {
  place_ = watch_.connections_.insert(watch_.connections_.end(), this);
  std::error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  if (watch_.closed_) close();
}

Connection::~Connection() {
  watch_.connections_.erase(place_);
}

Async<std::error_code> Connection::connect(tcp::endpoint endpoint, NetTime by) {
  std::error_code error;
  write_by_ = by;
  co_await socket_.async_connect(endpoint, asio::redirect_error(asio::use_awaitable, error));
  write_by_ = NetTime::max();
  std::error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  co_return error;
}

Async<std::error_code> Connection::fill(NetTime by) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (buffer_.empty()) buffer_.resize(kFirstBuffer);
  if (end_ == buffer_.size()) {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    } else if (buffer_.size() < kMaxBuffer) {
      buffer_.resize(buffer_.size() * 2);
    } else {
      co_return std::make_error_code(std::errc::no_buffer_space);
    }
  }
  std::error_code error;
  const auto room = asio::buffer(buffer_.data() + end_, buffer_.size() - end_);
  read_by_ = by;
  end_ += co_await socket_.async_read_some(room, asio::redirect_error(asio::use_awaitable, error));
  read_by_ = NetTime::max();
  co_return error;
}

Async<Connection::Sent> Connection::send(std::string_view text, NetTime by) {
  return send(std::array<std::string_view, 3>{text, {}, {}}, by);
}

Async<Connection::Sent> Connection::send(std::array<std::string_view, 3> texts, NetTime by) {
  Sent sent;
  const std::array<asio::const_buffer, 3> bytes = {asio::buffer(texts[0].data(), texts[0].size()),
                                                   asio::buffer(texts[1].data(), texts[1].size()),
                                                   asio::buffer(texts[2].data(), texts[2].size())};
  write_by_ = by;
  sent.bytes = co_await asio::async_write(socket_, bytes,
                                          asio::redirect_error(asio::use_awaitable, sent.error));
  write_by_ = NetTime::max();
  co_return sent;
}

void Connection::cancel() {
  std::error_code ignored;
  socket_.cancel(ignored);
}

void Connection::close() {
  std::error_code ignored;
  socket_.close(ignored);
}

void Connection::close_abruptly() {
  std::error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  close();
}

void Connection::end_of_sending() {
  std::error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

bool Connection::is_quiet() const {
  if (begin_ != end_ || !socket_.is_open()) return false;
  char byte;
  auto& socket = const_cast<tcp::socket&>(socket_);
  const ssize_t got = recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

bool Connection::has_hung_up() const {
  if (!socket_.is_open()) return true;
  char byte;
  auto& socket = const_cast<tcp::socket&>(socket_);
  const ssize_t got = recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

NetTime Pace::wait() {
  began_ = NetClock::now();
  const NetClock::duration earned = std::chrono::milliseconds(bytes_ * 1000 / kSlowest);
  const NetClock::duration pause = timeout_;
  return began_ + std::min(pause, pause + earned - waited_);
}

void Pace::done(std::size_t bytes) {
  waited_ += NetClock::now() - began_;
  bytes_ += bytes;
}

Async<HeadRead> read_head(Connection& connection, NetTime by) {
  std::size_t seen = 0;
  for (;;) {
    HeadRead read;
    const auto size = head_size(connection.in(), seen);
    if (!size) {
      read.bad = size.error();
      co_return read;
    }
    if (*size > 0) {
      read.size = *size;
      co_return read;
    }
    seen = connection.in().size();
    read.error = co_await connection.fill(by);
    if (read.error) co_return read;
  }
}

}  // namespace leasehold::gate
