// Loopback ports that belong to one test.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "kit/system/fd.h"

namespace leasehold::rig {

// A port that nobody else has: neither another test of this machine (a locked file says so) nor a
// client connection (it is below the range that the kernel takes those from). Move-only; given back
// by the destructor.
class Port {
 public:
  static Port take();

  std::uint16_t number() const { return number_; }
  std::string str() const { return std::to_string(number_); }
  std::string address() const { return "127.0.0.1:" + str(); }

 private:
  Port(std::uint16_t number, kit::Fd reservation)
      : number_(number), reservation_(std::move(reservation)) {}
  std::uint16_t number_;
  kit::Fd reservation_;
};

// Whether somebody accepts connections there.
bool accepts(std::uint16_t port);

// "127.0.0.1:2379,127.0.0.1:2380", of pointers to servers or proxies.
template <class Servers>
std::string addresses_of(const Servers& servers) {
  std::string list;
  for (const auto& it : servers) list += (list.empty() ? "" : ",") + it->address();
  return list;
}

// A connected socket; throws std::runtime_error.
kit::Fd connect_to(std::uint16_t port);

// Sends `request` to the port, and returns what comes until the other side closes or half a second
// of silence has passed; empty if nobody is there.
std::string converse(std::uint16_t port, const std::string& request);

}  // namespace leasehold::rig
