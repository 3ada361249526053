#include "leasehold/election.h"

#include <utility>

#include "kit/try.h"

namespace leasehold {
namespace {

// Nobody works under a lock that is only kept.
std::optional<Leader> leader_of(const LockStatus& lock) {
  const auto holder = lock.holder();
  if (!holder || holder->kept) return std::nullopt;
  return Leader{holder->owner, holder->note, holder->held_for,
                holder->foreign ? std::nullopt : std::optional(holder->token), holder->request};
}

Result<Lease> acquire(Client& client, const LockName& lock, AcquireOptions options,
                      std::optional<Token>& token) {
  if (client.store().guarantee != Guarantee::correctness) {
    return client.acquire(lock, std::move(options));
  }
  auto lease = TRY(client.acquire_fenced(lock, std::move(options)));
  token = lease.token();
  return std::move(static_cast<Lease&>(lease));
}

}  // namespace

Result<Leadership> Election::campaign(const CampaignOptions& options) {
  std::optional<Token> token;
  auto lease = TRY(acquire(client_, lock_,
                           {.ttl = options.ttl,
                            .wait = options.wait.value_or(Millis::max()),
                            .stop = options.stop,
                            .note = options.note},
                           token));
  return Leadership(std::move(lease), std::move(token));
}

Result<std::optional<Leader>> Election::leader(CallOptions options) {
  const auto lock = TRY(client_.inspect(lock_, std::move(options)));
  return leader_of(lock);
}

Result<Watch> Election::observe(LeaderObserver observer, WatchOptions options) {
  if (!observer) return fail(ErrorCode::invalid, "there is no observer to tell");
  return client_.watch(
      lock_,
      [observer = std::move(observer)](const Result<LockStatus>& now) {
        if (!now) return observer(fail(now.error()));
        observer(leader_of(*now));
      },
      options);
}

}  // namespace leasehold
