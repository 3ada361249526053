#include "service.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <unordered_map>

#include "kit/system/fd.h"
#include "kit/text/number.h"
#include "leasehold/gate/gate.h"
#include "rig/port.h"

namespace leasehold::gate {
namespace {

using kit::Fd;

constexpr int kPatienceMillis = 5000;
constexpr std::size_t kLargest = 64 * 1024;

std::size_t length_of_body(std::string_view head) {
  constexpr std::string_view kField = "\r\ncontent-length:";
  for (std::size_t at = 0; at + kField.size() < head.size(); ++at) {
    const bool here =
        std::equal(kField.begin(), kField.end(), head.begin() + at,
                   [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
    if (!here) continue;
    head.remove_prefix(std::min(head.size(), head.find_first_of("0123456789", at + kField.size())));
    return kit::take_number<std::size_t>(head).value_or(0);
  }
  return 0;
}

// One request at a time, one request a connection: it is the gate that has to be quick.
class Texts {
 public:
  Texts() : port_(rig::Port::take()), stop_(eventfd(0, EFD_CLOEXEC)) {
    listener_ = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_.number());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_.get(), 64) != 0) {
      throw std::runtime_error("the service of the drill cannot listen");
    }
    thread_ = std::jthread([this] { serve(); });
  }
  ~Texts() {
    const std::uint64_t one = 1;
    if (write(stop_.get(), &one, sizeof one) != sizeof one) return;
  }
  std::string url() const { return "http://" + port_.address(); }
  std::string port() const { return port_.str(); }

 private:
  void serve() {
    for (;;) {
      pollfd events[] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
      if (poll(events, 2, -1) < 0 || events[1].revents != 0) return;
      const Fd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (client) answer(client.get());
    }
  }

  void answer(int client) {
    const std::string request = receive(client);
    const std::size_t head = request.find("\r\n\r\n");
    if (head == std::string::npos) return;
    const std::size_t path_at = request.find(' ') + 1;
    const std::string path = request.substr(path_at, request.find(' ', path_at) - path_at);
    std::string body;
    if (request.starts_with("PUT ")) {
      texts_[path] = request.substr(head + 4);
    } else {
      body = texts_[path];
    }
    const std::string reply =
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\n\r\n" + body;
    if (send(client, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) return;
  }

  // Empty if it does not come whole.
  static std::string receive(int client) {
    std::string request;
    char buffer[4096];
    pollfd readable{client, POLLIN, 0};
    while (request.size() < kLargest && poll(&readable, 1, kPatienceMillis) > 0) {
      const ssize_t got = read(client, buffer, sizeof buffer);
      if (got <= 0) return {};
      request.append(buffer, static_cast<std::size_t>(got));
      const std::size_t head = request.find("\r\n\r\n");
      if (head == std::string::npos) continue;
      if (request.size() >= head + 4 + length_of_body(request.substr(0, head))) return request;
    }
    return {};
  }

  rig::Port port_;
  Fd stop_;
  Fd listener_;
  std::unordered_map<std::string, std::string> texts_;  // of the thread
  std::jthread thread_;
};

}  // namespace

class HttpService::Impl {
 public:
  explicit Impl(const std::string& folder) {
    GateOptions options;
    options.listen = "127.0.0.1:0";
    options.upstream = texts_.url();
    options.state = folder + "/gate";
    auto gate = Gate::open(std::move(options));
    if (!gate) throw std::runtime_error(to_string(gate.error()));
    gate_ = std::move(*gate);
    thread_ = std::jthread([this] { ended_ = gate_->run(); });
  }
  ~Impl() { gate_->stop(); }
  std::string url() const { return "http://" + gate_->address() + "?service=" + texts_.port(); }

 private:
  Texts texts_;
  std::unique_ptr<Gate> gate_;
  Status ended_;
  std::jthread thread_;
};

HttpService::HttpService(const std::string& folder) : impl_(std::make_unique<Impl>(folder)) {}
HttpService::~HttpService() = default;

std::string HttpService::url() const {
  return impl_->url();
}

}  // namespace leasehold::gate
