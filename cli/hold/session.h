// Holds a lease for the program that started us, and tells it what becomes of it.
#pragma once

#include <poll.h>

#include <initializer_list>
#include <optional>
#include <string>

#include "cli/command/events.h"
#include "cli/command/exit_status.h"
#include "cli/command/json.h"
#include "cli/command/lease_options.h"
#include "cli/command/signals.h"
#include "cli/hold/parent_lines.h"

namespace leasehold::cli {

struct HoldOptions : LeaseOptions {
  std::optional<Millis> heartbeat;  // none: a third of the TTL
  bool no_heartbeat = false;
};

// One lease, from taking it to its end. Events go to stdout, each as one line of JSON; the parent's
// lines come from stdin. Waits with poll for both, for signals and for the lease.
//
// A parent that is not heard of is neither alive nor dead as far as anybody knows: its lease is
// kept, and no longer renewed. Only the end of its input says that it has gone.
class HoldSession {
 public:
  HoldSession(const HoldOptions& options, LockName lock, OwnerLabel owner, Signals& signals)
      : options_(options), lock_(std::move(lock)), owner_(std::move(owner)), signals_(signals) {}

  Ending go();

 private:
  // Why it ends, if not because the lease does.
  enum class Stop { asked, input_ended, signal, unheard, wrong_word };
  // What the parent was told last.
  enum class Told { held, no_heartbeat, store_silent };

  struct Held {
    Client client;
    TakenLease taken;
  };
  Result<Held> take();
  Result<Held> open_and_take(const std::stop_token& stop) const;
  Ending stopped_before_it_was_held() const;
  Ending keep(Held& held);
  std::optional<Ending> check(Held& held);
  Told state_of(const Held& held) const;
  Ending lost(const Held& held);
  Ending give_back(Held& held);
  ExitStatus status_of_stop() const;
  BootTime next_look(const Held& held) const;

  // Until something comes from the parent, a signal, or one of `others` can be read.
  void wait(std::initializer_list<int> others);
  void take_signals();
  void listen();
  void hear(ParentWord word);
  void tell(const Json& event);
  void tell_state(const Held& held);

  const HoldOptions& options_;
  const LockName lock_;
  const OwnerLabel owner_;
  Signals& signals_;
  ParentLines lines_;
  BootTimer timer_;
  Flag lost_;
  std::optional<Stop> stop_;
  std::optional<Millis> heartbeat_;
  BootTime heard_;             // the last line of the parent
  bool missed_ = false;        // no line in time: the lease is not renewed
  BootTime stale_deadline_{};  // the lease has been renewed since, if it has another one
  Told told_ = Told::held;
  bool full_ = false;  // nobody reads stdout, and it has no room left
};

}  // namespace leasehold::cli
