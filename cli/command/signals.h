// Signals as events: blocked for the whole program, read from a descriptor.
#pragma once

#include <signal.h>

#include <optional>
#include <vector>

#include "leasehold/process/io.h"

namespace leasehold::cli {

// Make it before the first thread, so that all threads have the signals blocked. Drops what
// has arrived and restores the mask of its thread at the end.
//
// A signal that this program was started to ignore (nohup, or `&` in a script) stays ignored:
// blocked, it would arrive after all. But SIGCHLD is never ignored meanwhile, for then the kernel
// tells nobody how a command ended.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // The mask this program was started with: what a command should find.
  const sigset_t& before() const { return before_; }
  // What a command should find ignored although this program no longer ignores it.
  std::vector<int> ignored_before() const;

  int fd() const { return fd_.get(); }

  // The next one that arrived; does not block.
  std::optional<int> next();

  // Drops what has arrived; true if one of them asks a program to end.
  bool take_end_request();

  static bool asks_to_end(int number);

 private:
  sigset_t before_;
  struct sigaction child_before_;
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

// Ctrl-Z, as a program that blocks no signals would take it.
void stop_as_asked();

}  // namespace leasehold::cli
