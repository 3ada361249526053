#include "rig/port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>
#include <stdexcept>

namespace leasehold::rig {
namespace {

using kit::Fd;

constexpr int kFirst = 11000;
constexpr int kLast = 31000;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

bool can_be_bound(std::uint16_t port) {
  const Fd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in address = loopback(port);
  return bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

Fd reserve(std::uint16_t port) {
  const std::string folder = "/tmp/leasehold-ports";
  if (mkdir(folder.c_str(), 01777) == 0) chmod(folder.c_str(), 01777);
  Fd file(open((folder + "/" + std::to_string(port)).c_str(),
               O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.get() < 0 || flock(file.get(), LOCK_EX | LOCK_NB) != 0) return Fd();
  return file;
}

}  // namespace

Port Port::take() {
  static std::mt19937 random{std::random_device{}()};
  std::uniform_int_distribution<int> any(kFirst, kLast);
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    const auto port = static_cast<std::uint16_t>(any(random));
    Fd reservation = reserve(port);
    if (reservation.get() >= 0 && can_be_bound(port)) return {port, std::move(reservation)};
  }
  throw std::runtime_error("no free loopback port");
}

Fd connect_to(std::uint16_t port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("nobody accepts connections at 127.0.0.1:" + std::to_string(port));
  }
  return fd;
}

bool accepts(std::uint16_t port) {
  try {
    connect_to(port);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

std::string converse(std::uint16_t port, const std::string& request) {
  std::string answer;
  try {
    const Fd fd = connect_to(port);
    if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
    char buffer[4096];
    pollfd readable{fd.get(), POLLIN, 0};
    while (poll(&readable, 1, 500) > 0) {
      const ssize_t got = read(fd.get(), buffer, sizeof buffer);
      if (got <= 0) break;
      answer.append(buffer, static_cast<std::size_t>(got));
    }
  } catch (const std::runtime_error&) {
  }
  return answer;
}

}  // namespace leasehold::rig
