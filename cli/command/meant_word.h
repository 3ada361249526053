// The word that somebody who mistyped one may have meant.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::cli {

// The only one of `known` that is at most two edits away from `typed`, and no more than half as
// many as it has letters; dashes at the beginning are none. Nothing if there are none or several.
std::optional<std::string> meant_word(std::string_view typed,
                                      const std::vector<std::string>& known);

}  // namespace leasehold::cli
