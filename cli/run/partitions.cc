#include <utility>

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/run/partition_session.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

constexpr Range<std::int64_t> kCounts{1, 10'000};
constexpr Range<Millis> kLooks{10ms, 1min};

class RunPartitions final : public Subcommand {
 public:
  RunPartitions() { options_.ttl = 10s; }
  void declare(Arguments& arguments) override;
  Ending execute() override;

 private:
  PartitionRunOptions options_;
};

void RunPartitions::declare(Arguments& arguments) {
  PartitionRunOptions& o = options_;
  arguments.usage("GROUP [OPTIONS] -- COMMAND...");
  arguments.description(
      "Joins the group GROUP, whose members share out --count partitions, and runs the command. It "
      "reads what it gained and what it must give up from its standard input, one line of JSON "
      "each, and writes 'done NUMBER' when it has stopped working on what it must give up. Until "
      "then nobody else gets it. When the command ends, this member leaves, and exits as it did.");
  arguments.positional("GROUP", o.name,
                       "The group's name, which is a lock's; one that begins with a dash stands "
                       "after --");
  declare_store(arguments, o.store);
  arguments.number("--count", o.count, "How many partitions. All members name the same number",
                   kCounts);
  arguments.option("--member", "NAME", o.member,
                   "This member's own name, without spaces. With the same one it gets the same "
                   "partitions again; default host:pid");
  declare_ttl(arguments, o, "the command");
  declare_labels(arguments, o, "host:pid:command");
  declare_command(arguments, o);
  arguments.duration("--drain", o.drain,
                     "How long the command may take to stop a partition; then it is ended");
  declare_grace(arguments, o);
  arguments.duration("--look-every", o.look_every,
                     "How often to look for members that came or went", kLooks);
  arguments.flag("--verbose,-v", o.verbose, "Say what happens, and when");
  arguments.ends_with(ExitStatus::done,
                      "the command ended with 0; its other statuses are passed on");
  arguments.also_ends_with(ExitStatus::wrong_input,
                           "another member has this name, or says another --count");
  arguments.ends_with(ExitStatus::busy, "busy: somebody holds the lock GROUP alone");
  arguments.ends_with(ExitStatus::lost,
                      "a lease was lost, or was about to be, or a partition was not stopped in "
                      "time: the command was ended");
  declare_ends_of_command(arguments);
  arguments.example(
      "leasehold partitions orders --count 64 --member \"$(hostname)\" -- ./worker.py",
      "on each machine; a machine that comes back gets its partitions again");
}

Ending RunPartitions::execute() {
  if (options_.verbose) tell_time_in_notes();
  auto group = chosen_lock(options_.name);
  if (!group) return report(group.error());
  if (const auto ok = check_grace(options_); !ok) return report(ok.error());
  auto owner = chosen_owner(options_, options_.command.front());
  if (!owner) return report(owner.error());
  Signals signals;
  Waiting connecting(signals);
  options_.wait = Millis::max();  // as a service does that is started before its store
  auto client = await_store(options_.store, {.owner = std::move(*owner), .stop = connecting.stop()},
                            options_.wait);
  if (connecting.end()) return not_started();
  if (!client) return report(client.error());
  return PartitionSession(options_, std::move(*group), std::move(*client), signals).go();
}

}  // namespace

SubcommandEntry partitions_command() {
  return {"partitions", "Run a command that works on its share of a group's partitions",
          make<RunPartitions>};
}

}  // namespace leasehold::cli
