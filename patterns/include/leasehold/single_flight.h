// One recomputes a cached value; the others wait for it, or take the old one.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "leasehold/client.h"
#include "leasehold/random.h"

namespace leasehold {

struct CachedValue {
  std::string value;
  Millis fresh_for{0};  // from now on; zero or less: it is stale
  Millis took{0};       // how long it was computed
};

// Your cache. Values may stay there when they are stale: then nobody waits for the next one.
class ValueCache {
 public:
  virtual ~ValueCache() = default;
  [[nodiscard]] virtual Result<std::optional<CachedValue>> get(const std::string& key) = 0;
  [[nodiscard]] virtual Status put(const std::string& key, const CachedValue& value) = 0;
};

struct FetchOptions {
  Millis fresh_for = std::chrono::minutes(1);  // what is computed
  // How eager to compute anew before a value is stale, so that nobody finds it stale (XFetch): the
  // longer it took, and the sooner it is stale, the likelier. 0: never; above 1: earlier.
  double eagerness = 1;
  // The lock under which it is computed. `wait` is for somebody else's computation, if there is no
  // value at all. The mode is not looked at.
  AcquireOptions lock{.wait = std::chrono::seconds(10)};
};

struct Fetched {
  enum class From {
    cache,     // it is fresh
    stale,     // it is not, and somebody else computes it anew, or nobody can
    computed,  // by this call
  };
  std::string value;
  From from = From::cache;
};

// Efficiency: if a lease is lost, two compute the same. As thread safe as the cache, which must
// outlive this, as the clock and the random numbers must.
class SingleFlight {
 public:
  using Compute = std::function<Result<std::string>(std::stop_token)>;

  SingleFlight(Client client, ValueCache& cache, const Clock& clock = system_clock(),
               Random& random = system_random());

  // The cached value of this key, or what `compute` returns, which is then in the cache. The lock
  // has the name of the key.
  //
  // A fresh value is returned at once. If it is stale, or should be computed before it is, one call
  // computes it, and the others return the old one at once. If there is none, one computes and the
  // others wait for that; if it fails, one of them computes. The stop token is requested if the
  // lease is about to be lost (run_while_held.h).
  //
  // Fails with what `compute` or the cache says; if there is no value, also as Client::acquire()
  // does. With an old value the lock's store may be out of reach.
  [[nodiscard]] Result<Fetched> fetch(const LockName& key, const Compute& compute,
                                      const FetchOptions& options = {});

 private:
  bool is_due(const CachedValue& seen, double eagerness) const;
  Result<Fetched> compute_alone(const LockName& key, const std::optional<CachedValue>& seen,
                                const Compute& compute, const FetchOptions& options,
                                const std::stop_token& stop);
  Status wait_for_other(const LockName& key, AcquireOptions options);

  Client client_;
  ValueCache& cache_;
  const Clock& clock_;
  Random& random_;
};

}  // namespace leasehold
