// What a drill of the user's own program can see: the store, the resource, and the fence.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "leasehold/client.h"
#include "leasehold/fence_admin.h"
#include "leasehold/process/command.h"
#include "user_program.h"

namespace leasehold::drill {

// Calls block. Not thread safe.
class Lookout {
 public:
  // Fails as the store and the fence do.
  [[nodiscard]] static Result<Lookout> open(const UserPlan& plan, const std::string& store);

  Client& client() { return client_; }
  const LockName& lock() const { return lock_; }

  // What a worker finds in its environment.
  const auto& environment() const { return environment_; }

  // Who holds the lock, by the store; nobody if it is only kept after its end.
  [[nodiscard]] Result<LockStatus> look_at_lock();

  // What the watch command prints. A failure of it is tried again for a while; then `invalid`.
  [[nodiscard]] Result<std::string> look_at_resource() const;

  // How many writes the fence has refused so far; nothing without a fence.
  [[nodiscard]] Result<std::optional<std::int64_t>> look_at_fence();

  // Has nobody entered since it was opened? False without a fence.
  [[nodiscard]] Result<bool> nobody_entered();

 private:
  Lookout(Client client, LockName lock) : client_(std::move(client)), lock_(std::move(lock)) {}

  Client client_;
  LockName lock_;
  std::string watch_;
  std::unique_ptr<FenceAdmin> fence_;
  std::vector<FenceMark> marks_;  // as they were
  std::vector<std::pair<std::string, std::optional<std::string>>> environment_;
};

}  // namespace leasehold::drill
