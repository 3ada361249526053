// A command that works on the partitions of a member, from joining the group to leaving it.
#pragma once

#include <optional>
#include <string>

#include "cli/command/events.h"
#include "cli/run/partition_desk.h"
#include "cli/run/session.h"
#include "cli/run/worker_answers.h"

namespace leasehold::cli {

struct PartitionRunOptions : RunOptions {
  int count = 64;
  std::optional<std::string> member;
  Millis drain = std::chrono::seconds(30);
  Millis look_every = std::chrono::seconds(1);
};

// Events go to the command's stdin, each as one line of JSON; its answers come from its stdout.
// Waits with poll for both, for signals, for its end, and for the desk.
class PartitionSession {
 public:
  PartitionSession(const PartitionRunOptions& options, LockName group, Client client,
                   Signals& signals);

  Ending go();

 private:
  Ending work();
  process::Command command() const;
  void watch_until_end();
  void look();
  void tell_trouble();
  void tell_command(const Json& event);
  void write_to_command();
  void hear_command();
  void on_signal(int number);
  void on_child_change();
  void end_command(int number, const std::string& why);
  void say(const std::string& text) {
    if (options_.verbose) group_.tell(text);
  }

  const PartitionRunOptions& options_;
  const LockName group_name_;
  const std::string member_name_;
  Client client_;
  Signals& signals_;
  PartitionDesk desk_;
  std::optional<Partitions> member_;
  CommandGroup group_;
  BootTimer timer_;
  std::string to_command_;  // what its stdin had no room for yet
  WorkerAnswers answers_;
  bool told_wrong_answer_ = false;
  std::optional<BootTime> kill_at_;        // after SIGTERM
  std::optional<BootTime> stopped_since_;  // the command, by a signal
  std::string trouble_;                    // what was told last
};

}  // namespace leasehold::cli
