// A drill with the user's own program as the worker, in whatever language it is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/time.h"
#include "run.h"

namespace leasehold::drill {

struct UserPlan {
  std::vector<std::string> command;
  std::string store = "sqlite";      // a URL; or the name of a technology: one is started
  std::optional<std::string> fence;  // URL; its count of refusals is watched
  std::string lock = "drill";
  std::string watch;  // a shell command that prints what the workers write
  Millis ttl{2000};   // told to the workers
  std::uint64_t cycles = 3;
  std::uint64_t seed = 1;
};

// One cycle: the program is started, and frozen when the store says that it holds the lock, with
// everybody who came from it. It is started again, until that one has held the lock and changed the
// resource twice. The drill then takes the lock itself, so that nobody writes rightfully, and thaws
// the first. Whatever changes now was written by a holder whose lease is over.
//
// Before the first cycle the program is tried without a fault. Fails with `invalid` if it then
// takes no lock, changes nothing or fails: the sentence says what is expected of it. Fails as the
// store and the fence do. What the program prints goes to stderr. Call it from the thread that
// lives longest.
[[nodiscard]] Result<Drilled> drill_user_program(const UserPlan& plan, const Hooks& hooks);

}  // namespace leasehold::drill
