// How one process wakes a waiter in another: a datagram to its socket beside the database.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "leasehold/detail/fd.h"
#include "leasehold/error.h"
#include "leasehold/id.h"
#include "leasehold/random.h"

namespace leasehold::sqlite {

using leasehold::detail::Fd;

// The folder "<database>-wake" with one socket per waiting process. Not thread safe.
class WakeFolder {
 public:
  // Never fails: where there can be no sockets, nobody is reached, and waiters go by their timers.
  explicit WakeFolder(const std::string& database);

  enum class Reach {
    told,     // the waiter has the message
    gone,     // no process listens any more: the waiter is dead
    unknown,  // cannot be told; it may live
  };
  // Does not block.
  Reach wake(const std::string& address, const RequestId& request);

  // A way to the file that fits into a socket address, however long the folder's path is.
  std::string reachable(const std::string& address) const;
  // Whether the socket is still there.
  bool has(const std::string& address);
  void remove(const std::string& address);
  // Makes the folder; false if it cannot be.
  bool create();

 private:
  bool open();

  std::string path_;
  Fd folder_;
  Fd sender_;
};

// This process's own socket, and the thread that listens to it.
class WakeSocket {
 public:
  using OnWake = std::function<void(const RequestId&)>;

  // Nothing if this folder cannot hold sockets.
  static std::unique_ptr<WakeSocket> bind(WakeFolder& folder, Random& random, OnWake on_wake);
  ~WakeSocket();  // waits for a running on_wake

  const std::string& address() const { return address_; }

  // Makes the socket anew, at the same address, if somebody cleaned the folder.
  void keep_reachable();

 private:
  WakeSocket(WakeFolder& folder, std::string address, Fd socket, Fd poke, OnWake on_wake);
  void listen();
  void poke();

  WakeFolder& folder_;
  std::string address_;
  Fd socket_;
  Fd poke_;
  std::atomic<bool> stopping_ = false;
  OnWake on_wake_;
  std::thread thread_;
};

}  // namespace leasehold::sqlite
