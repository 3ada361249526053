// Signals as events: blocked for the whole program, read from a descriptor.
#pragma once

#include <signal.h>

#include <optional>

#include "leasehold/process/io.h"

namespace leasehold::cli {

// Make it before the first thread, so that all threads have the signals blocked. Drops what
// has arrived and restores the mask of its thread at the end.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // The mask this program was started with: what a command should find.
  const sigset_t& before() const { return before_; }

  int fd() const { return fd_.get(); }

  // The next one that arrived; does not block.
  std::optional<int> next();

  // Drops what has arrived; true if one of them asks a program to end.
  bool take_end_request();

  static bool asks_to_end(int number);

 private:
  sigset_t before_;
  process::Fd fd_;
};

// Lets one signal through in this thread while it lives.
class SignalUnblocked {
 public:
  explicit SignalUnblocked(int number);
  ~SignalUnblocked();
  SignalUnblocked(const SignalUnblocked&) = delete;
  SignalUnblocked& operator=(const SignalUnblocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace leasehold::cli
