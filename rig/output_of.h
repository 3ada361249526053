// Programs that a server comes with: psql, redis-cli, openssl.
#pragma once

#include <string>
#include <vector>

namespace leasehold::rig {

// Runs a program to its end, a minute at most; its output, without the last newlines. Throws
// std::runtime_error with its complaint if it fails.
std::string output_of(std::vector<std::string> argv);

}  // namespace leasehold::rig
