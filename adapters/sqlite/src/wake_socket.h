// How one process wakes a waiter in another: a datagram to its socket beside the database.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "kit/system/fd.h"
#include "leasehold/error.h"
#include "leasehold/id.h"
#include "leasehold/random.h"
#include "leasehold/time.h"

namespace leasehold::sqlite {

using kit::Fd;

// How often a process says that it lives while it waits.
inline constexpr Millis kSignEvery = std::chrono::seconds(2);

// The folder "<database>-wake" with one socket per waiting process. The time of a socket's last
// change is the boot clock's at the last sign of life of its process. Not thread safe.
class WakeFolder {
 public:
  // Never fails: where there can be no sockets, nobody is reached, and waiters go by their timers.
  WakeFolder(const std::string& database, const Clock& clock);

  enum class Reach {
    told,     // the waiter has the message
    gone,     // no process listens any more: the waiter is dead
    unknown,  // cannot be told; it may live
  };
  // Does not block.
  Reach wake(const std::string& address, const RequestId& request);

  // A way to the file that fits into a socket address, however long the folder's path is.
  std::string reachable(const std::string& address) const;
  // False if the socket is not there any more.
  bool sign(const std::string& address);
  // None if the socket is not there.
  std::optional<BootTime> last_sign(const std::string& address);
  void remove(const std::string& address);
  // Makes the folder; false if it cannot be.
  bool create();

 private:
  bool open();
  template <class Work>
  bool inside(Work work);

  std::string path_;
  const Clock& clock_;
  Fd folder_;
  Fd sender_;
};

// This process's own socket, and the thread that listens to it.
class WakeSocket {
 public:
  // Both are called on the thread that listens; on_sign every two seconds unless at rest.
  struct Handlers {
    std::function<void(const RequestId&)> on_wake;
    std::function<void()> on_sign;
  };

  // Nothing if this folder cannot hold sockets.
  static std::unique_ptr<WakeSocket> bind(WakeFolder& folder, Random& random, Handlers handlers);
  ~WakeSocket();  // waits for a running handler

  const std::string& address() const { return address_; }

  // Gives a sign of life. Makes the socket anew, at the same address, if somebody cleaned the
  // folder.
  void sign();
  // The same, but only if the last sign is two seconds old; ends a rest.
  void sign_if_due();
  // Its file stays when it goes, so that who wakes a waiter of this process finds it dead at once.
  void leave_file() { leaves_file_ = true; }
  // Nobody waits here: no signs until sign_if_due().
  void rest() { resting_ = true; }

 private:
  WakeSocket(WakeFolder& folder, std::string address, Fd socket, Fd poke, Handlers handlers);
  void listen();
  int patience() const;
  void poke();

  WakeFolder& folder_;
  std::string address_;
  Fd socket_;
  Fd poke_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> resting_ = false;
  bool leaves_file_ = false;
  std::atomic<BootTime> next_sign_;
  Handlers handlers_;
  std::thread thread_;
};

}  // namespace leasehold::sqlite
