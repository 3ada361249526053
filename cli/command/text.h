// Plain text for a terminal.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::cli {

// May output have characters beyond ASCII?
bool locale_is_utf8();

// How wide the terminal is that stdout goes to. Nothing: it is none, or does not tell.
std::optional<std::size_t> terminal_columns();
// And how many lines it has.
std::optional<std::size_t> terminal_rows();

// How many columns of a terminal it takes: Chinese characters take two, accents that are combined
// none.
std::size_t columns_of(std::string_view text);

// As it is, or without its middle, so that it takes at most so many columns.
std::string shortened(std::string_view text, std::size_t columns);

// Breaks `text` at spaces, at the width of the terminal (40 to 120 columns) or at 80; every line
// after the first begins with `indent` spaces.
std::string wrapped(std::string_view text, std::size_t indent);

// "a, b or c"
std::string either(const std::vector<std::string>& words);

}  // namespace leasehold::cli
