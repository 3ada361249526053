// The way in: connect to a store, take leases.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/lease.h"
#include "leasehold/name.h"
#include "leasehold/store.h"
#include "leasehold/time.h"
#include "leasehold/watch.h"

namespace leasehold {

class Registry;

struct AcquireOptions {
  Millis ttl = std::chrono::seconds(30);  // 100 ms to 24 h
  Millis wait{0};                         // how long to wait for a busy lock; zero: only try
  Millis store_timeout = std::chrono::seconds(5);  // how long the store may take to answer at all
  std::stop_token stop{};                          // ends the call early with `cancelled`
  Mode mode{};                                     // exclusive, shared, or one of N permits
  std::string note{};                              // for whoever looks; Note has the limits
};

struct CallOptions {
  Millis store_timeout = std::chrono::seconds(5);
  std::stop_token stop{};
};

struct ConnectOptions {
  std::optional<OwnerLabel> owner{};               // default: default_owner_label()
  const Clock* clock = nullptr;                    // default: system_clock()
  Random* random = nullptr;                        // default: system_random()
  IfMissing if_missing = IfMissing::create;        // refuse: connect() fails with `unavailable`
  Millis store_timeout = std::chrono::seconds(5);  // how long the store may take to answer at all
  std::stop_token stop{};                          // ends connect() early with `cancelled`
};

// Thread safe. A cheap handle: copies share the connections, one engine and a few threads, whose
// number does not grow with the leases. Leases keep what they need alive, so a client may go
// before its leases. The destructor of the last user waits up to two seconds for pending releases,
// and for a loss callback that is running.
//
// A client belongs to the process that made it: in a forked child every call fails with `invalid`.
class Client {
 public:
  // Takes over a store that has not been started. For tests and for stores of one's own.
  explicit Client(std::unique_ptr<Store> store, ConnectOptions options = {});
  ~Client();
  Client(const Client&);
  Client& operator=(const Client&);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  const StoreTraits& store() const;

  // Takes the lock, blocking at most about wait + store_timeout, however often it has to ask.
  // busy: somebody holds it, and `wait` was zero.    timeout: and `wait` has passed.
  // cancelled: the stop token.                       unavailable: the store did not answer.
  // outcome_unknown: the grant may exist; it is being given back in the background.
  // invalid: name, TTL, mode or note; or the lock is in use in a mode that does not mix with this
  // one, and the message says how.
  // unsupported: the store has no such mode.
  // After any failure this call holds nothing, and what it may have left behind is cleaned up.
  [[nodiscard]] Result<Lease> acquire(const LockName& lock, AcquireOptions options = {});
  [[nodiscard]] Result<Lease> acquire(std::string_view lock, AcquireOptions options = {});

  // The same with a token. Also fails with `unsafe_for_correctness` if the store's guarantee is
  // only efficiency: before anything is sent, with the reason and what to do instead.
  [[nodiscard]] Result<FencedLease> acquire_fenced(const LockName& lock,
                                                   AcquireOptions options = {});
  [[nodiscard]] Result<FencedLease> acquire_fenced(std::string_view lock,
                                                   AcquireOptions options = {});

  // What the store knows. A lock that was never taken has neither holder nor last token.
  [[nodiscard]] Result<LockStatus> inspect(const LockName& lock, CallOptions options = {});
  [[nodiscard]] Result<std::vector<LockStatus>> list(CallOptions options = {});

  // Tells who holds the lock, now and as it changes, until the Watch is gone; watch.h has the
  // rules. Does not block, and does not need the store to answer. A thousand watches of one client
  // share one subscription and its few threads. `invalid`: the name, look_every, or no observer;
  // `unavailable`: the system has no thread left.
  [[nodiscard]] Result<Watch> watch(const LockName& lock, LockObserver observer,
                                    WatchOptions options = {});
  [[nodiscard]] Result<Watch> watch(std::string_view lock, LockObserver observer,
                                    WatchOptions options = {});
  // The same of every lock whose name begins with `prefix`; empty: of all. It lists the locks of
  // the store again and again.
  [[nodiscard]] Result<Watch> watch_prefix(std::string_view prefix, LocksObserver observer,
                                           WatchOptions options = {});

  // Takes the lock away from the holder that was seen, never from its successor. The old holder is
  // told at its next renewal. `not_held`: it had gone already.
  [[nodiscard]] Result<ReleaseReply> force_release(const LockName& lock, const RequestId& seen,
                                                   CallOptions options = {});

  // Why the last renewal of any lease got no answer; nothing if it got one. For messages.
  std::optional<Error> renewal_error() const;

  // The lock has so many permits from now on (1 to Mode::kMostPermits), until it is told to forget
  // that: nothing. More are given out at once, fewer as permits come back. `invalid`: the number,
  // or the lock is in use without permits. `unsupported`: the store has no permits. `unavailable`,
  // `outcome_unknown`: as everywhere; doing it again is safe.
  [[nodiscard]] Status set_permits(const LockName& lock, std::optional<std::int64_t> permits,
                                   CallOptions options = {});

  // Gives the store a new id, after it was restored from a backup: its old tokens would be given
  // out again. Every fence must then adopt the new lineages.
  [[nodiscard]] Result<StoreId> rotate_store_id(CallOptions options = {});

  // The stored outcome of `key` under this lock, if any; and storing it, while `lease` holds. Hold
  // the lock alone between the two: others beside you would find nothing, and do it as well. A key
  // is as a lock's name (else `invalid`); parameters and result are any bytes. These and the next
  // fail with `unsupported` if the store keeps no such records.
  [[nodiscard]] Result<std::optional<OnceRecord>> recall(const LockName& lock, std::string key,
                                                         CallOptions options = {});
  [[nodiscard]] Status record(const Lease& lease, std::string key, OnceRecord what,
                              CallOptions options = {});

  // The keys that were recorded under this lock, in the order of their bytes; and forgetting one,
  // so that its work would be done again. False: there was none.
  [[nodiscard]] Result<std::vector<std::string>> recorded_keys(const LockName& lock,
                                                               CallOptions options = {});
  [[nodiscard]] Result<bool> forget(const LockName& lock, std::string key,
                                    CallOptions options = {});

 private:
  friend class AsyncClient;
  std::shared_ptr<detail::ClientCore> core_;
};

// Opens the store that the URL names, blocking at most about store_timeout, but for looking up host
// names, which the system does in its own time. Fails with `invalid`
// (URL), `unsupported` (scheme), `cancelled` (the stop token) or `unavailable` (with the address
// and the store's own words).
[[nodiscard]] Result<Client> connect(std::string_view url, ConnectOptions options = {});
// The same with the stores of `registry` instead of Registry::standard().
[[nodiscard]] Result<Client> connect(std::string_view url, ConnectOptions options,
                                     const Registry& registry);

}  // namespace leasehold
