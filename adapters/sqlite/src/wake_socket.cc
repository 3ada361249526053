#include "wake_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

namespace leasehold::sqlite {
namespace {

std::optional<sockaddr_un> socket_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Fd datagram_socket() {
  return Fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

WakeFolder::WakeFolder(const std::string& database)
    : path_(database + "-wake"), sender_(datagram_socket()) {}

bool WakeFolder::open() {
  if (folder_.get() < 0) folder_ = Fd(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return folder_.get() >= 0;
}

bool WakeFolder::create() {
  if (open()) return true;
  mkdir(path_.c_str(), 0777);  // the umask decides, as it did for the database
  return open();
}

std::string WakeFolder::reachable(const std::string& address) const {
  return "/proc/self/fd/" + std::to_string(folder_.get()) + "/" + address;
}

WakeFolder::Reach WakeFolder::wake(const std::string& address, const RequestId& request) {
  if (address.empty() || !open()) return Reach::unknown;
  const auto to = socket_address(reachable(address));
  if (!to) return Reach::unknown;
  const auto& bytes = request.bytes();
  if (sendto(sender_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&*to), sizeof *to) >= 0) {
    return Reach::told;
  }
  if (errno == ECONNREFUSED) {  // the kernel closed it when its process died
    unlinkat(folder_.get(), address.c_str(), 0);
    return Reach::gone;
  }
  return errno == ENOENT ? Reach::gone : Reach::unknown;
}

std::unique_ptr<WakeSocket> WakeSocket::bind(WakeFolder& folder, Random& random, OnWake on_wake) {
  if (!folder.create()) return nullptr;
  std::string address = RequestId::random(random).hex();
  const auto at = socket_address(folder.reachable(address));
  Fd socket = datagram_socket();
  Fd stop(eventfd(0, EFD_CLOEXEC));
  if (!at || socket.get() < 0 || stop.get() < 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*at), sizeof *at) != 0) {
    return nullptr;
  }
  return std::unique_ptr<WakeSocket>(new WakeSocket(folder, std::move(address), std::move(socket),
                                                    std::move(stop), std::move(on_wake)));
}

WakeSocket::WakeSocket(const WakeFolder& folder, std::string address, Fd socket, Fd stop,
                       OnWake on_wake)
    : folder_(folder),
      address_(std::move(address)),
      socket_(std::move(socket)),
      stop_(std::move(stop)),
      on_wake_(std::move(on_wake)),
      thread_([this] { listen(); }) {}

WakeSocket::~WakeSocket() {
  const std::uint64_t one = 1;
  while (write(stop_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
  unlinkat(folder_.folder(), address_.c_str(), 0);
}

void WakeSocket::listen() {
  std::array<pollfd, 2> wanted{pollfd{socket_.get(), POLLIN, 0}, pollfd{stop_.get(), POLLIN, 0}};
  for (;;) {
    if (poll(wanted.data(), wanted.size(), -1) < 0 && errno != EINTR) return;
    if (wanted[1].revents != 0) return;
    RequestId::Bytes bytes;
    const ssize_t length = recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (length == static_cast<ssize_t>(bytes.size())) on_wake_(RequestId(bytes));
  }
}

}  // namespace leasehold::sqlite
