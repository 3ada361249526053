#include "subcommands.h"

#include "subcommand.h"

namespace leasehold::cli {
namespace {

[[maybe_unused]] constexpr std::string_view kLeftOut = "Not in this build of Leasehold";

// A new subcommand: its own file, one declaration in subcommands.h and one line here.
constexpr SubcommandEntry kSubcommands[] = {
    {"run", "Run a command while holding a lock", make_run},
    {"ls", "List all locks of a store", make_ls},
    {"show", "Show everything about one lock", make_show},
    {"release", "Take a lock away from a dead or stuck holder", make_release},
    {"rotate-lineage", "Begin a new lineage after a restore", make_rotate_lineage},
    {"fence", "Look after the fences at a resource", make_fence},
    {"once", "Look after the idempotency keys in a database", make_once},
    {"outbox", "Relay messages that were written in a transaction", make_outbox},
    {"serial", "Prepare a database for serial queues", make_serial},
    {"doctor", "Find out what makes a live store's locks lie", make_doctor},
    {"advise", "Find out whether you need a lock, and which one", make_advise},
    {"probe", "Measure this machine's pauses, to choose a TTL", make_probe},
#ifdef LEASEHOLD_HAS_GATE
    {"gate", "Stand in front of an HTTP service as its fence", make_gate},
#else
    {"gate", kLeftOut, nullptr, true},
#endif
#ifdef LEASEHOLD_HAS_DEMO
    {"demo", "See why a lock needs a fence, in ten seconds", make_demo},
    {"demo-worker", "One worker of the demo", make_demo_worker, true},
#else
    {"demo", kLeftOut, nullptr, true},
#endif
#ifdef LEASEHOLD_HAS_DRILL
    {"drill", "Freeze real holders past their leases, and see what the fence does", make_drill},
    {"drill-worker", "One worker of the drill", make_drill_worker, true},
#else
    {"drill", kLeftOut, nullptr, true},
#endif
    {"completion", "Print the completion script of a shell", make_completion},
    {"version", "Print the version", make_version},
    {"man", "Print the manual page", make_man, true},
};

}  // namespace

std::span<const SubcommandEntry> subcommands() {
  return kSubcommands;
}

}  // namespace leasehold::cli
