// How the program ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "leasehold/error.h"

namespace leasehold::cli {

// What several commands end with. A command with a status of its own has a constant for it, as in
// `constexpr ExitStatus kFindings{78}`, and all tell theirs to Arguments::ends_with(). The numbers
// are part of the program's interface.
enum class ExitStatus : std::uint8_t {
  done = 0,
  wrong_input = 64,
  unavailable = 69,
  internal = 70,
  outcome_unknown = 74,
  busy = 75,
  lost = 76,
  unfit = 77,
  not_executable = 126,
  not_found = 127,
  by_signal = 128,  // and the signal's number added
  cancelled = 130,
};

ExitStatus exit_status(ErrorCode code);

// What it means wherever it comes from, in a few words; empty for one that a command has alone.
std::string_view in_short(ExitStatus status);

// "75"; "128+n"
std::string label(ExitStatus status);

// What a command gives: a status of the program's own, or another one that it passes on.
class Ending {
 public:
  Ending(ExitStatus own) : number_(static_cast<int>(own)), own_(true) {}  // NOLINT: the usual case

  // Of a command that was run under a lock, or as the user asked for.
  static Ending passed_on(int number) { return Ending(number); }

  int number() const { return number_; }
  bool is_own() const { return own_; }

 private:
  explicit Ending(int number) : number_(number) {}
  int number_;
  bool own_ = false;
};

}  // namespace leasehold::cli
