#pragma once

#include <memory>

namespace leasehold::cli {

class Subcommand;

std::unique_ptr<Subcommand> make_once();
std::unique_ptr<Subcommand> make_outbox();
std::unique_ptr<Subcommand> make_serial();

}  // namespace leasehold::cli
