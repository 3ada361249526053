// One owner for each of P partitions, spread over the members of a group.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/client.h"

namespace leasehold {

// The partition of a key, from 0 to count - 1: the same in every process and every version.
int partition_of(std::string_view key, int count);

// Whose turn each partition is, as an index of `members`, by rendezvous hashing: who joins only
// takes partitions, and who leaves only gives his own away. Empty without members.
std::vector<std::size_t> spread(const std::vector<std::string>& members, int count);

// The lock of a partition: "GROUP/NUMBER". `invalid`: too long a name.
[[nodiscard]] Result<LockName> partition_lock(const LockName& group, int partition);

// Valid until give_up() has returned.
struct OwnedPartition {
  int number;
  const Lease& lease;          // lost() ends the work, require() is its checkpoint
  std::optional<Token> token;  // none from a store whose tokens are not worth `correctness`
};

// What a member does with its partitions. All methods are called by one thread, one after the
// other, and a slow one delays other partitions, never a renewal or a loss.
class PartitionWork {
 public:
  virtual ~PartitionWork() = default;
  // This member alone owns it from now on, until its lease is lost or give_up() returns. To begin
  // work elsewhere, and return soon.
  virtual void gained(const OwnedPartition& partition) = 0;
  // Before the give_up() of one or of several that go together, so that their work can end side by
  // side. To return at once.
  virtual void will_give_up(int partition) { (void)partition; }
  // Follows each gained() once. It goes to another member, or was lost: nothing may work on it any
  // more when this returns. Until then nobody else gets it, unless the lease runs out.
  virtual void give_up(int partition) = 0;
};

struct PartitionsOptions {
  int count = 64;                         // 1 to 10,000, the same for all members
  std::string member{};                   // 1 to 128 bytes without spaces, its own
  std::string note{};                     // for route(): an address; without control characters
  Millis ttl = std::chrono::seconds(10);  // of its leases
  Millis look_every = std::chrono::seconds(1);  // for members that came or went
  Millis store_timeout = std::chrono::seconds(5);
  std::stop_token stop{};  // ends join() early with `cancelled`
};

// A member of a group, and the partitions that are its. There is no coordinator: the members are
// those who share the lock GROUP, each partition has an exclusive lock of its own, and each member
// takes the ones that spread() gives it as soon as they are free. So a partition never has two
// owners by the store's word; a frozen one is refused by a fence on the partition's token.
//
// One thread looks, takes and gives up. A member that cannot reach the store keeps what it has
// until its leases run out. One whose membership was lost joins again.
class Partitions {
 public:
  // `work` outlives the membership. Blocks for two or three calls to the store. Fails with
  // - `invalid`: an option; or another member says another count, or has this name. It has left
  //   then, and has taken nothing.
  // - `unsupported`: the store has no shared locks.
  // - as Client::acquire().
  [[nodiscard]] static Result<Partitions> join(Client client, const LockName& group,
                                               PartitionsOptions options, PartitionWork& work);
  Partitions(Partitions&&) noexcept;
  Partitions& operator=(Partitions&&) noexcept;  // leaves first
  ~Partitions();                                 // leaves

  // Gives up every partition, one after the other, then the membership. Blocks for the work and
  // for the store, each call at most store_timeout. Not to be called by `work`. Harmless again.
  void leave();

  // Thread safe, without blocking: what is owned now, and the members that were seen last.
  std::vector<int> owned() const;
  std::vector<std::string> members() const;
  // Why the last look at the group or the last try for a partition failed, if it did.
  std::optional<Error> trouble() const;

 private:
  class Core;
  explicit Partitions(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

struct Route {
  int partition;
  std::optional<std::string> member{};  // the owner; nothing: nobody owns it now
  std::string note{};                   // the owner's
  std::optional<TokenNumber> token{};
};
// Who owns the partition of `key` now. By the time it is used that may have changed: what is sent
// there is safe only if the owner's fence refuses it then. Fails as Client::inspect().
[[nodiscard]] Result<Route> route(Client& client, const LockName& group, int count,
                                  std::string_view key, CallOptions options = {});

}  // namespace leasehold
