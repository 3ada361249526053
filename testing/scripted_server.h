// A server whose every word the test decides.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "kit/system/fd.h"
#include "rig/port.h"

namespace leasehold::testing {

class ScriptedServer {
 public:
  // `script` is called with a connected socket, one connection after the other, on a thread of the
  // server's. When it returns, the connection is closed. It must return when the client has left,
  // or the server ends.
  explicit ScriptedServer(std::function<void(int)> script)
      : listener_(listening(port_.number())), thread_([this, script = std::move(script)] {
          for (;;) {
            const kit::Fd client(accept(listener_.get(), nullptr, nullptr));
            if (!client || !talks_to(client.get())) return;
            script(client.get());
            if (!talks_to(-1)) return;
          }
        }) {}
  ~ScriptedServer() {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    shutdown(listener_.get(), SHUT_RDWR);
    if (client_ >= 0) shutdown(client_, SHUT_RDWR);
  }
  ScriptedServer(const ScriptedServer&) = delete;

  std::uint16_t port() const { return port_.number(); }
  std::string address() const { return port_.address(); }

 private:
  static kit::Fd listening(std::uint16_t port) {
    kit::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(fd.get(), 5) != 0) {
      throw std::runtime_error("no socket listens at port " + std::to_string(port));
    }
    return fd;
  }

  // False when the server ends.
  bool talks_to(int client) {
    const std::lock_guard lock(mutex_);
    client_ = client;
    return !ends_;
  }

  const rig::Port port_ = rig::Port::take();
  const kit::Fd listener_;
  std::mutex mutex_;
  bool ends_ = false;  // with client_: under mutex_
  int client_ = -1;
  const std::jthread thread_;
};

// What a script may do.
namespace wire {

inline void say(int fd, std::string_view bytes) {
  (void)!send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// Everything until the client leaves.
inline void only_listen(int fd) {
  char ignored[1024];
  while (read(fd, ignored, sizeof ignored) > 0) {
  }
}

}  // namespace wire
}  // namespace leasehold::testing
