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
#include "leasehold/sql/once_work.h"
#include "leasehold/sqlite/fence.h"
#include "leasehold/sqlite/transaction.h"
#include "leasehold/token.h"

struct sqlite3;

namespace leasehold::sqlite {

// What the work receives: the transaction, and the way to the outside.
class FencedTransaction : public OpenTransaction {
 public:
  FencedTransaction(sqlite3* connection, std::string_view key)
      : OpenTransaction(connection), key_(key) {}

  // Puts a message into the outbox, in this transaction; its id. Without an idempotency key of its
  // own it has that of the work with "#1", "#2" and so on behind it, so that its receiver knows a
  // repeat. Needs install_outbox(). Fails as outbox_put(); then let the work fail, too.
  [[nodiscard]] Result<std::int64_t> send(OutboxEntry entry);

 private:
  std::string key_;
  int sent_ = 0;
};

// One resource behind the fence, with idempotency keys. A small value that may be copied; neither
// owns nor caches anything of the connection. As thread safe as the connection: not to be used by
// two threads at once.
class FencedOnce {
 public:
  // Needs install_fence() and install_once(). Fails as Fence::open and Once::open.
  [[nodiscard]] static Result<FencedOnce> open(sqlite3* connection, std::string_view resource);

  const ResourceName& resource() const { return fence_.resource(); }

  // Begins a transaction, enters the fence with `token`, and runs work(FencedTransaction&),
  // which returns Result<std::string>, unless it has succeeded under this key before. Stores its
  // result and commits all together. A repeat raises the mark too.
  //
  // Blocks up to options.wait for the write lock, as Once::run does, then for as long as the work
  // takes.
  //
  // Fails with
  // - `fenced_out`: another holder has entered since; error.refusal has both numbers. The work was
  //   not run, and nothing of an earlier result is told. The refusal is counted, durably.
  // - all else as Once::run. After any failure neither the mark, nor the key, nor what the work
  //   wrote has changed, except after `outcome_unknown`.
  template <sql::OnceWork<FencedTransaction> Work>
  [[nodiscard]] Result<OnceResult> run(const Token& token, std::string_view key,
                                       std::string_view parameters, Work&& work,
                                       const OnceOptions& options = {}) const {
    auto with_outbox = [&](OpenTransaction& open) -> Result<std::string> {
      FencedTransaction transaction(open.handle(), key);
      return std::invoke(work, transaction);
    };
    return sql::run_once<OpenTransaction, detail::OwnedTransaction>(
        begin(token, key, parameters, options), with_outbox,
        [&](const std::string& result) { return store(key, parameters, result); });
  }

 private:
  using Begun = sql::OnceBegun<detail::OwnedTransaction>;

  FencedOnce(sqlite3* connection, Fence fence)
      : connection_(connection), fence_(std::move(fence)) {}
  Result<Begun> begin(const Token& token, std::string_view key, std::string_view parameters,
                      const OnceOptions& options) const;
  Status store(std::string_view key, std::string_view parameters, std::string_view result) const;

  sqlite3* connection_;
  Fence fence_;
};

}  // namespace leasehold::sqlite
