// Idempotency keys in Redis. Guarantee: efficiency. It saves most repeats, and not all: the work
// and its result are not one transaction here, so the work runs twice
// - if the program dies after the work and before the result is stored,
// - if the work takes longer than `working_for`, or
// - if a failover or a restart loses what Redis has answered already.
// If a second run does damage, use postgres::Once or sqlite::Once, where your data is; or hand the
// key on to a service that keeps keys itself.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "leasehold/error.h"
#include "leasehold/id.h"
#include "leasehold/once.h"
#include "leasehold/time.h"

namespace leasehold::redis {

class Server;

struct OnceLifetimes {
  Millis working_for = std::chrono::minutes(1);  // then the key of an unfinished work is free again
  Millis keep_for = std::chrono::hours(24);      // then a result is forgotten, and may run again
};

// For Once: the right to work under a key; gives the key back unless finished. Not thread safe.
class KeyAtWork {
 public:
  KeyAtWork(std::shared_ptr<Server> server, OnceKey key, std::string parameters,
            const RequestId& request, Millis keep_for);
  KeyAtWork(KeyAtWork&&) noexcept = default;
  KeyAtWork& operator=(KeyAtWork&&) = delete;
  ~KeyAtWork();

  // Stores the result, or gives the key back after a failure, which is passed on.
  [[nodiscard]] Result<OnceResult> finish(Result<std::string> result);

 private:
  std::shared_ptr<Server> server_;  // none: finished
  OnceKey key_;
  std::string parameters_;
  RequestId request_;
  Millis keep_for_;
};

// The keys of one Redis server, in the hashes leasehold:result:<key>. Thread safe; moved and copied
// like a pointer. A forked child must open its own.
class Once {
 public:
  // "redis://host:6379/0", with the options of the lock store; `prefix` means nothing here.
  // Connects. Fails with `invalid` (URL; a lifetime below 1 ms or above 3650 days), `unavailable`
  // (server, also Redis before 5.0) or `unsupported` (a cluster).
  [[nodiscard]] static Result<Once> open(std::string_view url, const OnceLifetimes& lifetimes = {});

  // Runs work(), which returns Result<std::string>, unless it has succeeded under this key before;
  // then stores its result. Results may hold any bytes, as may parameters.
  //
  // Blocks up to options.wait for who is at work under the same key, asking again up to every 50
  // ms; then for as long as the work takes, and up to ten seconds to store.
  //
  // Fails with
  // - `invalid`: the key is wrong (1 to 512 bytes of UTF-8 without control characters) or was used
  //   with other parameters; parameters or result are too long.
  // - `busy` (wait 0) or `timeout`: somebody else is at work under this key. `cancelled`: stop was
  //   requested. `unavailable`: the server could not be asked. In all these the work was not run.
  // - `lost`: the work was run, took longer than `working_for`, and somebody else has begun it too.
  // - `outcome_unknown`: the work was run, but its result may not be stored: a repeat may run it
  //   again.
  // - the work's own error. An error or an exception gives the key back, so that the next call
  //   runs the work again.
  template <class Work>
  requires std::is_invocable_r_v<Result<std::string>, Work&> [[nodiscard]] Result<OnceResult> run(
      std::string_view key, std::string_view parameters, Work&& work,
      const OnceOptions& options = {}) const {
    auto begun = begin(key, parameters, options);
    if (!begun) return fail(std::move(begun.error()));
    if (auto* stored = std::get_if<OnceResult>(&*begun)) return std::move(*stored);
    return std::get<KeyAtWork>(*begun).finish(std::invoke(work));
  }

 private:
  using Begun = std::variant<OnceResult, KeyAtWork>;

  Once(std::shared_ptr<Server> server, const OnceLifetimes& lifetimes)
      : server_(std::move(server)), lifetimes_(lifetimes) {}
  Result<Begun> begin(std::string_view key, std::string_view parameters,
                      const OnceOptions& options) const;

  std::shared_ptr<Server> server_;
  OnceLifetimes lifetimes_;
};

}  // namespace leasehold::redis
