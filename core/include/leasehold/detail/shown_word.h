// A word from outside that may be an address, as it may stand in a message.
#pragma once

#include <string>

namespace leasehold::detail {

// Without the password of a URL. What only looks like a URL is cut off where one could be.
std::string shown(const std::string& word);

}  // namespace leasehold::detail
