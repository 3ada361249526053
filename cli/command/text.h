// Plain text for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::cli {

// May output have characters beyond ASCII?
bool locale_is_utf8();

// Breaks `text` at spaces, at 80 columns; every line after the first begins with `indent` spaces.
std::string wrapped(std::string_view text, std::size_t indent);

// "a, b or c"
std::string either(const std::vector<std::string>& words);

}  // namespace leasehold::cli
