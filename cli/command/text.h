// Plain text for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace leasehold::cli {

// May output have characters beyond ASCII?
bool locale_is_utf8();

// Breaks `text` at spaces, at 80 columns; every line after the first begins with `indent` spaces.
std::string wrapped(std::string_view text, std::size_t indent);

}  // namespace leasehold::cli
