// A command when it is its turn under a rate: it holds no lease while it runs.
#pragma once

#include <utility>

#include "cli/run/session.h"
#include "leasehold/rate_limit.h"

namespace leasehold::cli {

class RatedRun {
 public:
  RatedRun(const RunOptions& options, Rate rate, LockName lock, Client client, Signals& signals)
      : options_(options),
        rate_(rate),
        lock_(std::move(lock)),
        client_(std::move(client)),
        signals_(signals) {}

  // Takes a turn, runs the command, and stays as long as the turn needs this process.
  Ending go();

  // As of a RunSession.
  bool pass_interrupt_on() const { return pass_interrupt_on_; }

 private:
  Status take_turn(RateLimit& limit);
  Ending run(BootTime until);
  void stay_for_turn(BootTime until);
  void say(const std::string& text) const {
    if (options_.verbose) note_now(text);
  }

  const RunOptions& options_;
  const Rate rate_;
  const LockName lock_;
  Client client_;
  Signals& signals_;
  bool asked_to_end_ = false;
  bool pass_interrupt_on_ = false;
};

}  // namespace leasehold::cli
