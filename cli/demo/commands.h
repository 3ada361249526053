#pragma once

#include <memory>

namespace leasehold::cli {

class Subcommand;

std::unique_ptr<Subcommand> make_demo();
std::unique_ptr<Subcommand> make_demo_worker();

}  // namespace leasehold::cli
