#pragma once

#include <memory>

namespace leasehold::cli {

class Subcommand;

std::unique_ptr<Subcommand> make_drill();
std::unique_ptr<Subcommand> make_drill_worker();

}  // namespace leasehold::cli
