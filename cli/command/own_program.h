// Where this program is, for those that start it again as a worker.
#pragma once

#include <string>

namespace leasehold::cli {

std::string own_program();

}  // namespace leasehold::cli
