#include "wake_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace leasehold::sqlite {
namespace {

std::optional<sockaddr_un> socket_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

bool is_address(const std::string& text) {
  return RequestId::from_hex(text).has_value();
}

Fd datagram_socket() {
  return Fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

Fd bound_socket(WakeFolder& folder, const std::string& address) {
  if (!folder.create()) return Fd();
  const auto at = socket_address(folder.reachable(address));
  Fd socket = datagram_socket();
  const bool bound =
      at && socket && bind(socket.get(), reinterpret_cast<const sockaddr*>(&*at), sizeof *at) == 0;
  return bound ? std::move(socket) : Fd();
}

}  // namespace

WakeFolder::WakeFolder(const std::string& database, const Clock& clock)
    : path_(database + "-wake"), clock_(clock), sender_(datagram_socket()) {}

bool WakeFolder::open() {
  if (!folder_) {
    folder_ = Fd(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  return folder_.get() >= 0;
}

bool WakeFolder::create() {
  if (open()) return true;
  mkdir(path_.c_str(), 0777);  // the umask decides, as it did for the database
  return open();
}

// It may have been deleted and made anew since it was opened.
template <class Work>
bool WakeFolder::inside(Work work) {
  const bool was_open = static_cast<bool>(folder_);
  if (open() && work(folder_.get())) return true;
  folder_.reset();
  return was_open && open() && work(folder_.get());
}

bool WakeFolder::sign(const std::string& address) {
  const auto now = clock_.now().time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const timespec at{seconds.count(), std::chrono::nanoseconds(now - seconds).count()};
  const std::array<timespec, 2> times{at, at};
  return inside([&](int folder) {
    return utimensat(folder, address.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) == 0;
  });
}

// Addresses come out of a file that others write: nothing but a name in this folder will do.
std::optional<BootTime> WakeFolder::last_sign(const std::string& address) {
  if (!is_address(address)) return std::nullopt;
  struct stat there {};
  const bool found = inside([&](int folder) {
    return fstatat(folder, address.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0;
  });
  if (!found) return std::nullopt;
  return BootTime(std::chrono::seconds(there.st_mtim.tv_sec) +
                  std::chrono::nanoseconds(there.st_mtim.tv_nsec));
}

void WakeFolder::remove(const std::string& address) {
  if (is_address(address) && open()) unlinkat(folder_.get(), address.c_str(), 0);
}

std::string WakeFolder::reachable(const std::string& address) const {
  return "/proc/self/fd/" + std::to_string(folder_.get()) + "/" + address;
}

WakeFolder::Reach WakeFolder::wake(const std::string& address, const RequestId& request) {
  if (!last_sign(address)) return Reach::unknown;
  const auto to = socket_address(reachable(address));
  if (!to) return Reach::unknown;
  const auto& bytes = request.bytes();
  if (sendto(sender_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&*to), sizeof *to) >= 0) {
    return Reach::told;
  }
  // The kernel closed it when its process died.
  return errno == ECONNREFUSED ? Reach::gone : Reach::unknown;
}

std::unique_ptr<WakeSocket> WakeSocket::bind(WakeFolder& folder, Random& random,
                                             Handlers handlers) {
  std::string address = RequestId::random(random).hex();
  Fd socket = bound_socket(folder, address);
  Fd poke(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!socket || !poke) return nullptr;
  try {
    if (folder.sign(address)) {
      return std::unique_ptr<WakeSocket>(
          new WakeSocket(folder, address, std::move(socket), std::move(poke), std::move(handlers)));
    }
  } catch (const std::system_error&) {  // no thread to be had
  }
  folder.remove(address);
  return nullptr;
}

WakeSocket::WakeSocket(WakeFolder& folder, std::string address, Fd socket, Fd poke,
                       Handlers handlers)
    : folder_(folder),
      address_(std::move(address)),
      socket_(std::move(socket)),
      poke_(std::move(poke)),
      next_sign_(BootClock::now() + kSignEvery),
      handlers_(std::move(handlers)),
      thread_([this] { listen(); }) {}

WakeSocket::~WakeSocket() {
  stopping_ = true;
  poke();
  thread_.join();
  if (!leaves_file_) folder_.remove(address_);
}

void WakeSocket::poke() {
  const std::uint64_t one = 1;
  while (write(poke_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void WakeSocket::sign() {
  next_sign_ = BootClock::now() + kSignEvery;
  if (folder_.sign(address_)) return;
  const Fd fresh = bound_socket(folder_, address_);
  if (!fresh || dup3(fresh.get(), socket_.get(), O_CLOEXEC) < 0) return;
  (void)folder_.sign(address_);
  poke();  // the listener still waits on the socket that was there before
}

void WakeSocket::sign_if_due() {
  const bool rested = resting_.exchange(false);
  if (rested || BootClock::now() >= next_sign_.load()) sign();
  if (rested) poke();  // the listener would not wake by itself
}

int WakeSocket::patience() const {
  if (resting_) return -1;
  const auto left = std::chrono::ceil<Millis>(next_sign_.load() - BootClock::now());
  return static_cast<int>(std::clamp(left, Millis(0), kSignEvery).count());
}

void WakeSocket::listen() {
  std::array<pollfd, 2> wanted{pollfd{socket_.get(), POLLIN, 0}, pollfd{poke_.get(), POLLIN, 0}};
  while (!stopping_) {
    if (poll(wanted.data(), wanted.size(), patience()) < 0 && errno != EINTR) return;
    if (!resting_ && BootClock::now() >= next_sign_.load()) {
      next_sign_ = BootClock::now() + kSignEvery;
      handlers_.on_sign();
    }
    if (wanted[1].revents != 0) {
      std::uint64_t pokes = 0;
      (void)!read(poke_.get(), &pokes, sizeof pokes);
      continue;
    }
    RequestId::Bytes bytes;
    const ssize_t length = recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (length == static_cast<ssize_t>(bytes.size())) handlers_.on_wake(RequestId(bytes));
  }
}

}  // namespace leasehold::sqlite
