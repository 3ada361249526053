// The calls of a client and its leases without a thread that waits: each tells a completion.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "leasehold/client.h"

namespace leasehold {

// What is to be done with the answer of a call: whatever can be called with a Result<T>, also if it
// can only be moved.
template <class T>
class OnResult {
 public:
  template <class Callable>
  requires(!std::same_as<std::remove_cvref_t<Callable>, OnResult> &&
           std::invocable<std::decay_t<Callable>&, Result<T>>)
      OnResult(Callable&& callable)  // implicit: a lambda is one
      : callable_(
            std::make_unique<Holder<std::decay_t<Callable>>>(std::forward<Callable>(callable))) {}

  void operator()(Result<T> result) { callable_->call(std::move(result)); }

 private:
  struct Any {
    virtual ~Any() = default;
    virtual void call(Result<T> result) = 0;
  };
  template <class Callable>
  struct Holder final : Any {
    template <class From>
    explicit Holder(From&& from) : callable(std::forward<From>(from)) {}
    void call(Result<T> result) override { callable(std::move(result)); }
    Callable callable;
  };
  std::unique_ptr<Any> callable_;
};

// Thread safe. A cheap handle, as a Client is, and of the same kind: it shares the connection, the
// engine and the threads of the client that it was made of. The number of threads does not grow
// with the calls that are pending.
//
// Each call returns at once. Its completion is then called exactly once, with what the call of the
// same name in Client or Lease returns, with the same limits and failures:
// - Never inside the call that it belongs to. Only in a forked child it is, with a failure: that
//   process has no other thread of the client.
// - On one thread of the client that does nothing else. A slow completion delays other completions,
//   but no renewal, no loss, and nobody else's grant. It may begin calls, and drop leases and
//   clients. It must not throw: that ends the program, as in a std::stop_callback.
// - A lease that it does not take is released. Its loss may be told before it is called.
// - A stop token that is requested makes it come soon, with `cancelled`.
//
// When the last handle of a client and its last lease go, an acquire that is pending ends with
// `cancelled` and holds nothing, another question so or with `unavailable`; the destructor waits
// for their completions, or calls them itself if it runs in one. A release is not cut off: it keeps
// what it needs until it is answered.
class AsyncClient {
 public:
  explicit AsyncClient(const Client& client) : client_(client) {}

  void acquire(const LockName& lock, AcquireOptions options, OnResult<Lease> done) const;
  void acquire(std::string_view lock, AcquireOptions options, OnResult<Lease> done) const;
  void acquire_fenced(const LockName& lock, AcquireOptions options,
                      OnResult<FencedLease> done) const;
  void acquire_fenced(std::string_view lock, AcquireOptions options,
                      OnResult<FencedLease> done) const;

  // The lease is over when this returns, and `lease` may only be destroyed or assigned to. If the
  // store cannot keep a lock (`unsupported`), `lease` stays as it is.
  void release(Lease&& lease, CallOptions options, OnResult<ReleaseOutcome> done) const;
  void release_after(Lease&& lease, Millis keep_for, CallOptions options,
                     OnResult<ReleaseOutcome> done) const;

  void inspect(LockName lock, CallOptions options, OnResult<LockStatus> done) const;
  void list(CallOptions options, OnResult<std::vector<LockStatus>> done) const;
  void force_release(LockName lock, RequestId seen, CallOptions options,
                     OnResult<ReleaseReply> done) const;
  void set_permits(LockName lock, std::optional<std::int64_t> permits, CallOptions options,
                   OnResult<void> done) const;
  void rotate_store_id(CallOptions options, OnResult<StoreId> done) const;

  void recall(LockName lock, std::string key, CallOptions options,
              OnResult<std::optional<OnceRecord>> done) const;
  void record(const Lease& lease, std::string key, OnceRecord what, CallOptions options,
              OnResult<void> done) const {
    record(lease.lock(), lease.request(), std::move(key), std::move(what), std::move(options),
           std::move(done));
  }
  void record(LockName lock, RequestId holder, std::string key, OnceRecord what,
              CallOptions options, OnResult<void> done) const;
  void recorded_keys(LockName lock, CallOptions options,
                     OnResult<std::vector<std::string>> done) const;
  void forget(LockName lock, std::string key, CallOptions options, OnResult<bool> done) const;

 private:
  static void end(Lease& lease, Millis keep_for, CallOptions options,
                  OnResult<ReleaseOutcome> done);

  Client client_;
};

}  // namespace leasehold
