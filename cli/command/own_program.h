// Where this program is, for those that start it again as a worker, and what came with it.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::cli {

std::string own_program();

// The path of a page such as "docs/run.md": where it was installed with this program, or as it is
// if it was not.
std::string document_path(std::string_view page);

}  // namespace leasehold::cli
