// What the nemesis does to servers and their network, one thing at a time.
#pragma once

#include <chrono>
#include <optional>

#include "chance.h"
#include "ledger.h"
#include "plan.h"
#include "site.h"

namespace leasehold::drill {

class ServerNemesis {
 public:
  using Clock = std::chrono::steady_clock;

  ServerNemesis(const Plan& plan, Site& site, Millis ttl, Chance& chance, Ledger& ledger);

  // Begins or ends a fault if it is time. May block while a server starts.
  void look_at_clock();
  // Ends the fault that lasts, if one does; none begins any more.
  void calm_down();

 private:
  void end();
  Fault draw();
  Clock::duration some_time(Millis least, Millis most);

  Site& site_;
  const Millis ttl_;
  Chance& chance_;
  Ledger& ledger_;
  std::vector<Fault> faults_;
  std::vector<Fault> deck_;  // those whose turn is still to come
  std::optional<Fault> lasting_;
  Clock::time_point due_;
  // The next fault waits until everything works again, as long as that may take.
  std::uint64_t written_before_ = 0;
  Clock::time_point no_longer_{};
};

}  // namespace leasehold::drill
