// Which etcd servers this store can work with.
#pragma once

#include <array>
#include <compare>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "leasehold/error.h"
#include "leasehold/examination.h"

namespace leasehold::etcd {

struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;

  // "3.4.23", also with something behind it ("3.6.0-rc.1"); else nothing.
  static std::optional<Version> parse(std::string_view text);
  std::string str() const;
  auto operator<=>(const Version&) const = default;
};

// The first that lets a client number its watches.
inline constexpr Version kOldestVersion{3, 4, 0};

// A fault that was found and mended, and concerns locks.
struct KnownFault {
  enum class Meets {
    everyone,
    single_members,  // only a cluster of one
    users,           // only where authentication is on
  };
  struct Lines {  // in one line of versions: from the first that has it to the first that has not
    Version from;
    Version mended;
  };

  const char* what;    // a clause: "after a crash ..."
  const char* effect;  // a sentence
  bool tokens_go_back;
  Severity severity;
  Meets meets;
  std::array<Lines, 3> lines;
  const char* source;

  // Where this version is mended; nothing if it does not have the fault.
  std::optional<Version> mended_in(const Version& version) const;
};
std::span<const KnownFault> known_faults();

// A known fault of this version by which tokens can be given again, in one clause; empty: none.
std::string known_fault(const Version& version);

// The same of a server that says `version`, with that before it. `unavailable` if it is too old;
// `address` begins the sentence.
[[nodiscard]] Result<std::string> fault_of(const std::string& address, const std::string& version);

}  // namespace leasehold::etcd
