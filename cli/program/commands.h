#pragma once

#include <memory>

namespace leasehold::cli {

class Subcommand;

std::unique_ptr<Subcommand> make_completion();
std::unique_ptr<Subcommand> make_version();
std::unique_ptr<Subcommand> make_man();

}  // namespace leasehold::cli
