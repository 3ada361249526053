// Work under a lock, told to stop before the lock could pass on.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "leasehold/client.h"

namespace leasehold {

struct RunOptions {
  AcquireOptions acquire{};  // its `stop` ends the waiting, and is passed on to the work
  // The work is told to stop so long before the lease's deadline, if no renewal has come by then:
  // as long as its longest step takes. At most a third of the TTL. By default a sixth.
  std::optional<Millis> margin{};
};

// How work under a lease ended.
struct RunEnd {
  // To the end of the work, as far as this process knows. False: the lease was lost while the work
  // ran, and somebody else may have worked beside it.
  bool held = false;
  // The stop token of the work was requested before its end, whether it looked or not.
  bool told_to_stop = false;
  // Why the lease could not be given back. The lock is then free after the TTL at the latest.
  std::optional<Error> not_released{};
};

// The same, with what the work returned.
template <class Value>
struct Ran : RunEnd {
  Value result;
};
template <>
struct Ran<void> : RunEnd {};

namespace detail {

// Watches a lease while work runs, and gives it back at the end.
class HeldRun {
 public:
  HeldRun(Lease& lease, const RunOptions& options);
  ~HeldRun();  // as end()
  HeldRun(const HeldRun&) = delete;

  [[nodiscard]] Status begin();
  std::stop_token stop() const;
  RunEnd end();

 private:
  class Watch;
  Lease& lease_;
  const RunOptions& options_;
  std::unique_ptr<Watch> watch_;
};

[[nodiscard]] Status check(const RunOptions& options);

template <class Work, class HeldLease>
using ResultOf = std::invoke_result_t<Work&, std::stop_token, const HeldLease&>;

template <class Value, class HeldLease, class Take, class Work>
Result<Ran<Value>> run_under(Take take, const RunOptions& options, Work work) {
  if (auto ok = check(options); !ok) return fail(std::move(ok.error()));
  Result<HeldLease> lease = take();
  if (!lease) return fail(std::move(lease.error()));
  HeldRun run(*lease, options);
  if (auto ok = run.begin(); !ok) return fail(std::move(ok.error()));
  if constexpr (std::is_void_v<Value>) {
    work(run.stop(), std::as_const(*lease));
    return Ran<void>{run.end()};
  } else {
    Value result = work(run.stop(), std::as_const(*lease));
    return Ran<Value>{run.end(), std::move(result)};
  }
}

}  // namespace detail

// Takes the lock, calls work(stop_token, const Lease&) on the calling thread, gives the lock back,
// and says how it ended. `lock` is a LockName or text. Work that needs no lease may take the stop
// token alone.
//
// The token is requested
// - `margin` before the lease's deadline, if it could not be renewed by then: the work has that
//   time to end before the store may give the lock to somebody else;
// - when the lease is lost;
// - when the caller's options.acquire.stop is requested.
// Work that looks at its token at least every `margin`, and whose process is not stopped, ends
// before anybody else begins. Where that is not enough, use run_while_held_fenced. Callbacks on
// the token run on a thread of this call, which waits for them at the end.
//
// An exception of the work passes through, after the lock was given back. Giving back takes at most
// options.acquire.store_timeout; without an answer the background goes on trying.
//
// Thread safe; blocks as Client::acquire() does, and for as long as the work does. Fails as
// Client::acquire() does, and with
// - `invalid`: options.margin is negative or more than a third of the TTL;
// - `lost`: the lease had less than `margin` left before the work could begin;
// - `unavailable`: this process cannot start a thread.
// After any failure the work was not called, and this call holds nothing.
template <class LockNameOrText, class Work>
requires std::invocable<Work&, std::stop_token, const Lease&>
[[nodiscard]] auto run_while_held(Client& client, const LockNameOrText& lock,
                                  const RunOptions& options, Work&& work) {
  return detail::run_under<detail::ResultOf<Work, Lease>, Lease>(
      [&] { return client.acquire(lock, options.acquire); }, options, std::ref(work));
}
template <class LockNameOrText, class Work>
requires std::invocable<Work&, std::stop_token>
[[nodiscard]] auto run_while_held(Client& client, const LockNameOrText& lock,
                                  const RunOptions& options, Work&& work) {
  return run_while_held(client, lock, options, [&](std::stop_token stop, const Lease&) {
    return std::invoke(work, std::move(stop));
  });
}
template <class LockNameOrText, class Work>
[[nodiscard]] auto run_while_held(Client& client, const LockNameOrText& lock, Work&& work) {
  return run_while_held(client, lock, RunOptions(), work);
}

// The same for work that shows a token at a fence: work(stop_token, const FencedLease&). Also fails
// with `unsafe_for_correctness`, as Client::acquire_fenced() does.
template <class LockNameOrText, class Work>
requires std::invocable<Work&, std::stop_token, const FencedLease&>
[[nodiscard]] auto run_while_held_fenced(Client& client, const LockNameOrText& lock,
                                         const RunOptions& options, Work&& work) {
  return detail::run_under<detail::ResultOf<Work, FencedLease>, FencedLease>(
      [&] { return client.acquire_fenced(lock, options.acquire); }, options, std::ref(work));
}
template <class LockNameOrText, class Work>
[[nodiscard]] auto run_while_held_fenced(Client& client, const LockNameOrText& lock, Work&& work) {
  return run_while_held_fenced(client, lock, RunOptions(), work);
}

}  // namespace leasehold
