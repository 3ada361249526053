#pragma once

#include <memory>

namespace leasehold::cli {

class Subcommand;

std::unique_ptr<Subcommand> make_ls();
std::unique_ptr<Subcommand> make_show();
std::unique_ptr<Subcommand> make_release();
std::unique_ptr<Subcommand> make_rotate_lineage();

}  // namespace leasehold::cli
