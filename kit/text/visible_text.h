// Text from outside, made fit to be shown.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace leasehold::kit {

// The text without control characters, which could make a terminal do or hide something: what
// comes from a store may have been written by anybody. In their place, and in that of bytes that
// are not UTF-8, stands U+FFFD.
std::string visible(std::string_view text);

// A name so that it can be pasted into a shell and is the same name there: 'name', or
// $'n\xC3\xA4me' if it has an apostrophe or something that visible() would replace. Bash, zsh and
// ksh read that.
std::string in_quotes(std::string_view name);
// The same for a table: without the quotes where nobody could be misled.
std::string pasteable(std::string_view name);
// Names as the end of a command line, in quotes: after "--" if one looks like an option.
std::string operands(std::initializer_list<std::string_view> names);

// JSON, with the same characters as \uNNNN: read again it is the same, and it misleads nobody who
// looks at it.
std::string json_shown(std::string_view json);

// The text of a failure as every store can keep it: UTF-8 without a zero byte, and 8 KiB at most.
// Bytes that are not are written as \xNN; of a longer text there is the beginning, and an ellipsis.
std::string storable(std::string_view text);

}  // namespace leasehold::kit
