// One start of the user's own program, with everybody who comes from it.
#pragma once

#include <utility>

#include "leasehold/error.h"
#include "leasehold/process/child.h"

namespace leasehold::drill {

// Leads a session, so that its children are found whatever process groups they make. All of them
// are killed with the object. Not thread safe.
class UserWorker {
 public:
  // Fails with `invalid` if the program cannot be started.
  [[nodiscard]] static Result<UserWorker> start(process::Command command);

  UserWorker(UserWorker&& other) noexcept
      : child_(std::move(other.child_)), reaped_(std::exchange(other.reaped_, true)) {}
  UserWorker& operator=(UserWorker&&) = delete;
  ~UserWorker();

  bool has_ended() const;

  // All stop. False if some did not, which is a machine in trouble.
  bool freeze();
  // All go on, but not `last` if it has children: these come first, and it must not end them
  // before they have done what they were about to do. True if it is kept back.
  bool thaw_children_of(pid_t last);
  void thaw();
  // Somebody below `ancestor` lives.
  bool anybody_below(pid_t ancestor) const;

  // Kills who is left. How the program itself ended.
  process::ExitStatus end();

 private:
  explicit UserWorker(process::Child child) : child_(std::move(child)) {}
  process::Child child_;
  bool reaped_ = false;
};

}  // namespace leasehold::drill
