#include "http_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "rig/port.h"

namespace leasehold::gate {
namespace {

constexpr int kPatienceMillis = 30'000;

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

Reply HttpClient::ask(std::string_view method, std::string_view target, const FieldList& fields,
                      std::string_view body) {
  std::string text =
      std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: test\r\n";
  for (const auto& [name, value] : fields) text += name + ": " + value + "\r\n";
  if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  send(text + "\r\n" + std::string(body));
  return reply(method == "HEAD");
}

void HttpClient::send(std::string_view bytes) {
  if (!fd_) {
    fd_ = leasehold::rig::connect_to(port_);
    in_.clear();
    ended_ = false;
  }
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool HttpClient::fill() {
  if (ended_ || !fd_) return false;
  pollfd readable{fd_.get(), POLLIN, 0};
  char bytes[16384];
  const ssize_t got =
      poll(&readable, 1, kPatienceMillis) > 0 ? recv(fd_.get(), bytes, sizeof bytes, 0) : -1;
  ended_ = got <= 0;
  if (!ended_) in_.append(bytes, static_cast<std::size_t>(got));
  return !ended_;
}

std::string HttpClient::take(std::size_t size) {
  while (in_.size() < size && fill()) {
  }
  std::string taken = in_.substr(0, size);
  in_.erase(0, size);
  return taken;
}

std::string HttpClient::take_line() {
  std::size_t end;
  while ((end = in_.find("\r\n")) == std::string::npos && fill()) {
  }
  if (end == std::string::npos) return "";
  std::string line = take(end + 2);
  line.resize(line.size() - 2);
  return line;
}

std::string HttpClient::head() {
  std::string all;
  for (;;) {
    const std::string line = take_line();
    if (line.empty()) return all;
    all += line + "\r\n";
  }
}

void HttpClient::read_chunks(Reply& reply) {
  for (;;) {
    const std::string line = take_line();
    if (line.empty()) return;
    const std::size_t size = std::stoul(line, nullptr, 16);
    if (size == 0) break;
    reply.body += take(size);
    if (!take_line().empty()) return;
  }
  reply.trailer = head();
  reply.complete = !ended_ || in_.empty();
}

Reply HttpClient::reply(bool to_head) {
  Reply reply = reply_and_stay(to_head);
  const auto connection = reply.fields.find("connection");
  if (connection != reply.fields.end() && connection->second == "close") close();
  return reply;
}

Reply HttpClient::reply_and_stay(bool to_head) {
  Reply reply;
  const std::string text = head();
  if (!text.starts_with("HTTP/1.1 ")) return reply;
  reply.status = std::stoi(text.substr(9, 3));
  std::size_t at = text.find("\r\n") + 2;
  while (at < text.size()) {
    const std::size_t end = text.find("\r\n", at);
    const std::size_t colon = text.find(": ", at);
    reply.fields[lower_case(text.substr(at, colon - at))] = text.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  const auto length = reply.fields.find("content-length");
  if (to_head || reply.status == 204 || reply.status == 304) {
    reply.complete = true;
  } else if (reply.fields.contains("transfer-encoding")) {
    read_chunks(reply);
  } else if (length != reply.fields.end()) {
    const std::size_t size = std::stoul(length->second);
    reply.body = take(size);
    reply.complete = reply.body.size() == size;
  }
  return reply;
}

bool HttpClient::skip(std::size_t size) {
  while (size > 0 && (!in_.empty() || fill())) {
    const std::size_t now = std::min(size, in_.size());
    in_.erase(0, now);
    size -= now;
  }
  return size == 0;
}

bool HttpClient::ends() {
  return in_.empty() && !fill() && in_.empty();
}

void HttpClient::close() {
  fd_.reset();
}

void HttpClient::end_of_sending() {
  shutdown(fd_.get(), SHUT_WR);
}

FieldList token_fields(const Token& token, const std::string& prefix) {
  return {{prefix + "-Token", std::to_string(token.number.value())},
          {prefix + "-Lineage", token.lineage.str()},
          {prefix + "-Request", token.request.hex()}};
}

}  // namespace leasehold::gate
