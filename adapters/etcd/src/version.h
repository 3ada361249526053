// Which etcd servers this store can work with.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::etcd {

struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;

  // "3.4.23", also with something behind it ("3.6.0-rc.1"); else nothing.
  static std::optional<Version> parse(std::string_view text);
  auto operator<=>(const Version&) const = default;
};

// The first that lets a client number its watches.
inline constexpr Version kOldestVersion{3, 4, 0};

// A known fault of this version that concerns locks, in one clause; empty: none known.
std::string known_fault(const Version& version);

}  // namespace leasehold::etcd
