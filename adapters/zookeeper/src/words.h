// ZooKeeper's words of four letters, by which a server tells of itself.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "leasehold/error.h"
#include "leasehold/store.h"
#include "leasehold/url.h"

namespace leasehold::zookeeper {

// What the server says. `unavailable` if it does not answer; `unsupported` if the word is not among
// those it is allowed to answer.
[[nodiscard]] Result<std::string> ask_word(const HostPort& host, const std::string& word,
                                           const CallContext& context);

// The lines "name<separator>value".
std::map<std::string, std::string> fields_in(std::string_view text, std::string_view separator);

// The first numbers of a version such as "3.8.0-5a02a05, built on ..."; nothing if it is none.
struct ServerVersion {
  int major = 0;
  int minor = 0;
};
std::optional<ServerVersion> version_in(std::string_view text);

// The whole number at the beginning, as milliseconds: 0 if there is none, a year at the most.
Millis millis_in(std::string_view text);

// How many voting servers the lines "server.N=..." name.
std::size_t voters_in(std::string_view config);

}  // namespace leasehold::zookeeper
