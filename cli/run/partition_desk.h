// The partitions of a member, between the thread that takes and gives them and a command that
// works on them.
#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/command/events.h"
#include "cli/command/json.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/partitions.h"

namespace leasehold::cli {

struct DeskLimits {
  std::optional<Millis> grace;  // as grace_of() takes it
  Millis drain{0};              // how long the command may take to stop a partition
};

// Tells the command what it gained and what it must give up, and keeps a partition from passing on
// until the command has said that it stopped, or has ended.
class PartitionDesk final : public PartitionWork {
 public:
  explicit PartitionDesk(DeskLimits limits) : limits_(limits) {}

  // The member's thread. give_up() blocks until the command has stopped.
  void gained(const OwnedPartition& partition) override;
  void will_give_up(int partition) override;
  void give_up(int partition) override;

  // Readable when it is time to look again; look() clears it.
  int fd() const { return changed_.fd(); }

  struct Look {
    std::vector<Json> events;   // to be told to the command
    std::optional<int> signal;  // it has not stopped in time: what to end it with
    std::string why;
    std::optional<BootTime> again;
  };
  Look look(BootTime now);

  // The command says that it stopped it. False: it was not asked to.
  bool stopped(int partition);

  // For a command that has ended, but not those it left behind: when the first lease that they may
  // work under must be over with them. Readable from then on: one was lost.
  BootTime end_of_work();
  int lost_fd() const { return lost_.fd(); }

  // Nothing of the command is left, and nothing more is told.
  void close();

 private:
  struct Wake {
    const PartitionDesk& desk;
    void operator()() const {
      desk.lost_.raise();
      desk.changed_.raise();
    }
  };
  struct Held {
    Held(const OwnedPartition& partition, const PartitionDesk& desk)
        : lease(partition.lease),
          token(partition.token),
          on_loss(partition.lease.lost(), Wake{desk}) {}

    const Lease& lease;
    const std::optional<Token> token;
    bool leaving = false;           // it goes to another member
    bool at_work = false;           // the command was told that it has it
    std::optional<BootTime> asked;  // since when it is to be given up
    std::stop_callback<Wake> on_loss;
  };
  void look_at(int partition, Held& held, BootTime now, Look& look) const;
  Json gained_event(int partition, const Held& held, BootTime now) const;

  const DeskLimits limits_;
  Flag changed_;
  Flag lost_;
  Mutex mutex_;
  ConditionVariable given_;
  std::map<int, Held> held_ LEASEHOLD_GUARDED_BY(mutex_);
  bool closed_ LEASEHOLD_GUARDED_BY(mutex_) = false;
};

}  // namespace leasehold::cli
