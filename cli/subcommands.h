// The makers of all subcommands; each is defined in the file of its name.
#pragma once

#include <memory>

namespace leasehold::cli {

class Subcommand;

std::unique_ptr<Subcommand> make_advise();
std::unique_ptr<Subcommand> make_completion();
std::unique_ptr<Subcommand> make_demo();          // in builds with the SQLite adapter
std::unique_ptr<Subcommand> make_demo_worker();   // likewise
std::unique_ptr<Subcommand> make_drill();         // in builds with the drill
std::unique_ptr<Subcommand> make_drill_worker();  // likewise
std::unique_ptr<Subcommand> make_doctor();
std::unique_ptr<Subcommand> make_fence();
std::unique_ptr<Subcommand> make_gate();  // in builds with the HTTP gate
std::unique_ptr<Subcommand> make_ls();
std::unique_ptr<Subcommand> make_man();
std::unique_ptr<Subcommand> make_once();
std::unique_ptr<Subcommand> make_outbox();
std::unique_ptr<Subcommand> make_probe();
std::unique_ptr<Subcommand> make_release();
std::unique_ptr<Subcommand> make_rotate_lineage();
std::unique_ptr<Subcommand> make_run();
std::unique_ptr<Subcommand> make_serial();
std::unique_ptr<Subcommand> make_show();
std::unique_ptr<Subcommand> make_version();

}  // namespace leasehold::cli
