// The controlling terminal, and which process group may use it.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <optional>
#include <string>

#include "leasehold/process/io.h"

namespace leasehold::process {

// The terminal of this process's session. Block SIGTTOU while using it: only then may a process in
// the background set the foreground.
class Terminal {
 public:
  // Nothing without a controlling terminal.
  static std::optional<Terminal> controlling();

  int fd() const { return fd_.get(); }

  // Is the group of this process, or the given one, in the foreground?
  bool is_foreground() const;
  bool is_foreground(pid_t group) const;

  // Makes `group` the foreground. False if it is not of this session, or has gone.
  bool give_to(pid_t group);
  // Takes the foreground back, if `group` has it.
  void take_back_from(pid_t group);

  // The modes as they were at the beginning: for after a command that was killed in raw mode.
  void restore_modes();

 private:
  explicit Terminal(Fd fd);
  Fd fd_;
  std::optional<termios> modes_;
};

// A new pair: what a terminal emulator holds, and the terminal that programs see.
struct Pty {
  Fd master;
  Fd slave;
};
// Throws std::system_error if the system has none left.
Pty make_pty();

}  // namespace leasehold::process
