// The strongest form: one transaction that enters the fence, looks up the idempotency key, works
// and stores the result. The fence refuses who is stale; the key refuses what was done. Neither
// covers the other: a new holder that repeats an old request passes the fence, and a stale one with
// a new request has a fresh key.
//
// What goes to the outside goes through the outbox: a message is sent if, and only if, the work was
// committed, and a repeat of the work does not send it again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "leasehold/error.h"
#include "leasehold/once.h"
#include "leasehold/outbox.h"
#include "leasehold/sql/fence.h"
#include "leasehold/sql/once.h"
#include "leasehold/token.h"

namespace leasehold::sql {

// What the work receives: the transaction, and the door to the outside.
template <class Driver>
class FencedTransaction : public OpenTransactionOf<Driver> {
 public:
  FencedTransaction(typename Driver::Handle* connection, std::string_view key)
      : OpenTransactionOf<Driver>(connection), key_(key) {}

  // Puts a message into the outbox, in this transaction; its id. Without an idempotency key of its
  // own it has that of the work with "#1", "#2" and so on behind it, so that its receiver knows a
  // repeat. Needs install_outbox(). Fails as outbox_put(); then let the work fail, too.
  [[nodiscard]] Result<std::int64_t> send(OutboxEntry entry) {
    ++sent_;
    if (!entry.idempotency_key) entry.idempotency_key = detail::message_key(key_, sent_);
    return Driver::put(this->handle(), entry);
  }

 private:
  std::string key_;
  int sent_ = 0;
};

// One resource behind the fence, with idempotency keys. A small value that may be copied; neither
// owns nor caches anything of the connection. As thread safe as the connection: not to be used by
// two threads at once. `Driver` is the database.
template <class Driver>
class FencedOnce {
  using Handle = typename Driver::Handle;
  using Open = OpenTransactionOf<Driver>;

 public:
  // Needs install_fence() and install_once(). Fails as Fence::open and Once::open.
  [[nodiscard]] static Result<FencedOnce> open(Handle* connection, std::string_view resource) {
    auto fence = Fence<Driver>::open(connection, resource);
    if (!fence) return fail(std::move(fence.error()));
    if (auto ok = Driver::check_once(connection); !ok) return fail(std::move(ok.error()));
    return FencedOnce(connection, fence->resource());
  }

  const ResourceName& resource() const { return resource_; }

  // Begins a transaction, enters the fence with `token`, and runs work(FencedTransaction&), which
  // returns Result<std::string>, unless it has succeeded under this key before. Stores its result
  // and commits all together. A repeat raises the mark too.
  //
  // Blocks for who is inside the fence as Fence does, and up to options.wait as Once::run does,
  // then for as long as the work takes.
  //
  // Fails with
  // - `fenced_out`: another holder has entered since; error.refusal has both numbers. The work was
  //   not run, and nothing of an earlier result is told. The refusal is counted, durably.
  // - all else as Once::run. After any failure neither the mark, nor the key, nor what the work
  //   wrote has changed, except after `outcome_unknown`.
  template <OnceWork<FencedTransaction<Driver>> Work>
  [[nodiscard]] Result<OnceResult> run(const Token& token, std::string_view key,
                                       std::string_view parameters, Work&& work,
                                       const OnceOptions& options = {}) const {
    auto with_outbox = [&](Open& open) -> Result<std::string> {
      FencedTransaction<Driver> transaction(open.handle(), key);
      return std::invoke(work, transaction);
    };
    return run_once<Open, typename Driver::Transaction>(
        Driver::begin_fenced_once(connection_, resource_, token, key, parameters, options),
        with_outbox, [&](const std::string& result) {
          return Driver::store_result(connection_, key, parameters, result);
        });
  }

 private:
  FencedOnce(Handle* connection, ResourceName resource)
      : connection_(connection), resource_(std::move(resource)) {}

  Handle* connection_;
  ResourceName resource_;
};

}  // namespace leasehold::sql
