// Text inside XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::drill {

// For the text of an element and for a quoted attribute; control characters, line ends among them,
// become U+FFFD.
std::string escaped(std::string_view text);

// The same, but line by line.
std::string escaped_lines(std::string_view text);

}  // namespace leasehold::drill
