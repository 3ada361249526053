// Texts made from the command line's own tree.
#pragma once

#include <string>

#include "cli/command/arguments.h"

namespace leasehold::cli {

std::string render_help(const CommandDoc& command);

}  // namespace leasehold::cli
