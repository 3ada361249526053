#include "scripted_upstream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace leasehold::gate {
namespace {

using namespace std::chrono_literals;

bool read_more(int fd, std::string& in) {
  char bytes[65536];
  const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
  if (got <= 0) return false;
  in.append(bytes, static_cast<std::size_t>(got));
  return true;
}

std::string read_chunked(int fd, std::string& in) {
  std::string body;
  for (;;) {
    std::size_t end;
    while ((end = in.find("\r\n")) == std::string::npos && read_more(fd, in)) {
    }
    if (end == std::string::npos) return body;
    const std::size_t size = std::stoul(in, nullptr, 16);
    in.erase(0, end + 2);
    if (size == 0) break;
    while (in.size() < size + 2 && read_more(fd, in)) {
    }
    body += in.substr(0, size);
    in.erase(0, size + 2);
  }
  for (;;) {
    std::size_t end;
    while ((end = in.find("\r\n")) == std::string::npos && read_more(fd, in)) {
    }
    if (end == std::string::npos) return body;
    if (end > 0) body += "|" + in.substr(0, end);  // a trailer, shown to the test
    in.erase(0, end + 2);
    if (end == 0) return body;
  }
}

}  // namespace

std::string Arrival::target() const {
  const std::size_t first = head.find(' ') + 1;
  return head.substr(first, head.find(' ', first) - first);
}

bool Arrival::has_line(std::string_view line) const {
  return head.find("\r\n" + std::string(line) + "\r\n") != std::string::npos;
}

void Arrival::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string Arrival::read(std::size_t size) const {
  std::string bytes(size, '\0');
  const ssize_t got = recv(fd, bytes.data(), size, 0);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

void Arrival::answer(int status, std::string_view text) {
  send("HTTP/1.1 " + std::to_string(status) + " Whatever\r\nContent-Length: " +
       std::to_string(text.size()) + "\r\n\r\n" + std::string(text));
  finish();
}

void Arrival::hang_up() {
  shutdown(fd, SHUT_RDWR);
  finish();
}

void Arrival::finish() {
  done = true;
  done.notify_all();
}

ScriptedUpstream::ScriptedUpstream(Options options) : options_(options) {
  listener_ = kit::Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port_.number());
  if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_.get(), 512) != 0) {
    throw std::runtime_error("the upstream cannot listen");
  }
  acceptor_ = std::thread([this] { accept_loop(); });
}

ScriptedUpstream::~ScriptedUpstream() {
  stopping_ = true;
  shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    for (const auto& arrival : all_) arrival->finish();
  }
  for (std::thread& thread : threads_) thread.join();
}

void ScriptedUpstream::accept_loop() {
  for (;;) {
    const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const std::lock_guard lock(mutex_);
    open_.push_back(fd);
    ++connections_;
    threads_.emplace_back([this, fd] { serve(fd); });
  }
}

void ScriptedUpstream::serve(int fd) {
  std::string in;
  while (!stopping_) {
    const auto arrival = read_request(fd, in);
    if (!arrival) break;
    std::function<bool(Arrival&)> answer;
    {
      const std::lock_guard lock(mutex_);
      ++arrived_;
      answer = answer_;
      all_.push_back(arrival);
    }
    if (!answer || !answer(*arrival)) {
      {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(arrival);
        changed_.notify_all();
      }
      arrival->done.wait(false);
    }
    const std::lock_guard lock(mutex_);
    std::erase(all_, arrival);
  }
  const std::lock_guard lock(mutex_);
  std::erase(open_, fd);
  close(fd);
  changed_.notify_all();
}

std::shared_ptr<Arrival> ScriptedUpstream::read_request(int fd, std::string& in) const {
  std::size_t end;
  while ((end = in.find("\r\n\r\n")) == std::string::npos) {
    if (!read_more(fd, in)) return nullptr;
  }
  auto arrival = std::make_shared<Arrival>();
  arrival->fd = fd;
  arrival->head = in.substr(0, end + 4);
  in.erase(0, end + 4);
  if (!options_.read_bodies) {
    arrival->body.swap(in);
    return arrival;
  }
  const std::size_t length = arrival->head.find("Content-Length: ");
  if (arrival->has_line("Transfer-Encoding: chunked")) {
    arrival->body = read_chunked(fd, in);
  } else if (length != std::string::npos) {
    const std::size_t size = std::stoul(arrival->head.substr(length + 16));
    while (in.size() < size && read_more(fd, in)) {
    }
    arrival->body = in.substr(0, size);
    in.erase(0, size);
  }
  return arrival;
}

std::shared_ptr<Arrival> ScriptedUpstream::next() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, 30s, [&] { return !waiting_.empty(); })) return nullptr;
  auto arrival = waiting_.front();
  waiting_.pop_front();
  return arrival;
}

void ScriptedUpstream::wait_until_quiet() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return open_.empty(); });
}

void ScriptedUpstream::answer_by(std::function<bool(Arrival&)> answer) {
  const std::lock_guard lock(mutex_);
  answer_ = std::move(answer);
}

}  // namespace leasehold::gate
