// What to start, and how.
#pragma once

#include <signal.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::process {

// Where one of the three standard streams of a child comes from or goes to.
struct Inherit {};
struct Null {};
struct Piped {};  // the parent gets the other end: Child::in(), out(), err()
struct ToFile {
  std::string path;
  bool append = false;  // for stdin: neither creates nor truncates
};
struct FromFd {
  int fd;  // borrowed until the start has returned
};
using Stream = std::variant<Inherit, Null, Piped, ToFile, FromFd>;

enum class Placement {
  same_group,   // as its parent
  own_group,    // leads a process group that can be signalled as a whole
  own_session,  // leads a session; `terminal`, if given, becomes its controlling terminal
};

struct Command {
  std::vector<std::string> argv;  // argv[0] without a slash is looked up in PATH

  // Added to the parent's environment; no value: taken out of it.
  std::vector<std::pair<std::string, std::optional<std::string>>> environment = {};

  Stream in = Inherit{};
  Stream out = Inherit{};
  Stream err = Inherit{};

  Placement placement = Placement::same_group;

  // own_group: made the foreground group of this terminal before the command runs.
  // own_session: the session's controlling terminal.
  std::optional<int> terminal = {};

  // Sent to the child when the thread that started it ends; so start long-lived children from a
  // thread that lives as long. A set-user-id program is not protected by it.
  std::optional<int> parent_death_signal = {};

  // Signals the command finds blocked. None given: nothing is blocked. Handlers of the parent are
  // reset; what the parent ignores stays ignored, as nohup(1) needs it.
  std::optional<sigset_t> signal_mask = {};

  // Ignored in the command although the parent does not.
  std::vector<int> ignored_signals = {};
};

// Why a command did not start.
struct StartError {
  enum class Step { prepare, fork, place, streams, execute };
  Step step = Step::prepare;
  int error = 0;        // errno
  std::string message;  // "cannot run 'x': No such file or directory"

  // Like a shell's $?: 127 if the command was not found, else 126.
  int shell_status() const;
};

}  // namespace leasehold::process
