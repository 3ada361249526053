// One leader of many candidates: an exclusive lock, seen by everybody.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "leasehold/client.h"

namespace leasehold {

struct CampaignOptions {
  Millis ttl = std::chrono::seconds(30);  // how long nobody leads after a leader died
  std::optional<Millis> wait{};           // how long to stand; not given: until elected
  std::stop_token stop{};                 // ends it with `cancelled`
  std::string note{};                     // for all who observe: an address, a version
};

// Whom everybody sees at the lead.
struct Leader {
  std::string owner;
  std::string note;
  Millis leads_for;                  // as the store tells it
  std::optional<TokenNumber> token;  // none: another program leads
  RequestId request;                 // another one is another leader, or another time in office
};
using LeaderObserver = std::function<void(const Result<std::optional<Leader>>&)>;

// Leads while the object lives. Move-only; the destructor resigns in the background. Thread safe as
// Lease is.
class Leadership {
 public:
  // What to show at the fence of whatever the leader writes to. None where the store's guarantee
  // is only efficiency: there two may lead at once, and nothing refuses the one before.
  const std::optional<Token>& token() const { return token_; }

  // Requested when it is lost: somebody else leads, or soon will. Stop what a leader does.
  std::stop_token lost() const { return lease_.lost(); }
  // The lease itself: state, deadline, and require() before each step that only a leader may take.
  const Lease& lease() const { return lease_; }

  // Lets the next candidate lead; as Lease::release().
  [[nodiscard]] Result<ReleaseOutcome> resign(Millis timeout = std::chrono::seconds(5),
                                              std::stop_token stop = {}) {
    return lease_.release(timeout, std::move(stop));
  }

 private:
  friend class Election;
  Leadership(Lease lease, std::optional<Token> token)
      : lease_(std::move(lease)), token_(std::move(token)) {}

  Lease lease_;
  std::optional<Token> token_;
};

// Thread safe; a cheap handle. All who stand and observe name the same lock in the same store.
class Election {
 public:
  Election(Client client, LockName lock) : client_(std::move(client)), lock_(std::move(lock)) {}

  // Blocks until this candidate leads; first come, first served where the store queues. A store
  // that is away is asked again until it is back. Fails as Client::acquire(), `unsupported` also
  // for a note where the store keeps none.
  [[nodiscard]] Result<Leadership> campaign(const CampaignOptions& options = {});

  // Who leads now; nobody: nothing. Fails as Client::inspect().
  [[nodiscard]] Result<std::optional<Leader>> leader(CallOptions options = {});

  // Tells who leads, now and after each change, until the Watch is gone; watch.h has the rules. An
  // error: that cannot be seen. Fails as Client::watch().
  [[nodiscard]] Result<Watch> observe(LeaderObserver observer, WatchOptions options = {});

 private:
  Client client_;
  LockName lock_;
};

}  // namespace leasehold
