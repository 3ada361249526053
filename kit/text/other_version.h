// The sentence about a format that this program does not know: the same advice for all of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::kit {

// Its end, after what says which version was found and which this program knows. `afresh` says how
// to begin with nothing, and what that forgets; it is told only of an earlier version, since no
// release has written one.
std::string remedy_for_version(std::int64_t found, std::int64_t known, std::string_view afresh);

}  // namespace leasehold::kit
