// A small file that a URL names.
#pragma once

#include <string>

#include "leasehold/error.h"

namespace leasehold::kit {

// Never waits for a writer, as reading a pipe or a terminal would: those are refused, and what is
// larger than a megabyte too. `invalid`; the message goes on after "the file": "cannot be read".
[[nodiscard]] Result<std::string> content_of_file(const std::string& path);

}  // namespace leasehold::kit
