// Idempotency keys: a pattern that needs no lock. The key, its parameters and its result are stored
// in the transaction that does the work, so that a repeat finds the result and does nothing.
//
// What the work does outside this database (mail, another service) is not covered: a crash before
// the commit makes it happen again. Hand the key on to the other side instead.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "leasehold/error.h"
#include "leasehold/once.h"
#include "leasehold/sql/transaction.h"

namespace leasehold::sql {

template <class Work, class Open>
concept OnceWork = std::is_invocable_r_v<Result<std::string>, Work&, Open&>;

// What beginning under a key gives: the result of earlier, or a transaction to work in.
template <class Transaction>
using OnceBegun = std::variant<OnceResult, Transaction>;

// Runs the work unless it has a result, stores what it returns with `store`, and commits both.
template <class Open, class Transaction, OnceWork<Open> Work, class Store>
Result<OnceResult> run_once(Result<OnceBegun<Transaction>> begun, Work& work, const Store& store) {
  if (!begun) return fail(std::move(begun.error()));
  if (auto* stored = std::get_if<OnceResult>(&*begun)) return std::move(*stored);
  auto work_and_store = [&](Open& transaction) -> Result<std::string> {
    Result<std::string> result = std::invoke(work, transaction);
    if (!result) return result;
    if (auto ok = store(*result); !ok) return fail(std::move(ok.error()));
    return result;
  };
  auto answer =
      run_and_commit<Open, Transaction>(std::get<Transaction>(std::move(*begun)), work_and_store);
  if (!answer) return fail(std::move(answer.error()));
  return OnceResult{std::move(*answer), false};
}

// A small value that may be copied; neither owns nor caches anything of the connection. As thread
// safe as the connection: not to be used by two threads at once. `Driver` is the database.
template <class Driver>
class Once {
  using Handle = typename Driver::Handle;
  using Open = OpenTransactionOf<Driver>;

 public:
  // Fails with `invalid` for a connection that cannot be used, `unavailable` if Once is not
  // installed there or has another version.
  [[nodiscard]] static Result<Once> open(Handle* connection) {
    if (auto ok = Driver::check_once(connection); !ok) return fail(std::move(ok.error()));
    return Once(connection);
  }

  // Runs work(OpenTransaction&), which returns Result<std::string>, unless it has succeeded under
  // this key before; stores its result and commits both together. Results may hold any bytes, as
  // may parameters. Of several who come with the same key at once, one works; the others wait for
  // it and get its result, or work themselves if it fails.
  //
  // Blocks up to options.wait for who is at work (see the once.h of the database), then for as long
  // as the work takes. The connection's own timeout for that does not count, and is as before when
  // the work runs.
  //
  // Fails with
  // - `invalid`: the key is wrong (1 to 512 bytes of UTF-8 without control characters) or was used
  //   with other parameters; parameters or result are too long; a transaction is open already; the
  //   work ended the transaction, ignored a failed statement or broke a deferred constraint.
  // - `busy` (wait 0) or `timeout`: somebody else is at work. `cancelled`: stop was requested.
  // - `unavailable`: the database said no, or the commit was not done. Safe to repeat.
  // - `outcome_unknown`: the disk failed or the connection was lost during the commit; repeating
  //   with the same key, on another connection if need be, finds out.
  // - the work's own error. An error or an exception rolls back and stores nothing, so that the
  //   next call runs the work again.
  template <OnceWork<Open> Work>
  [[nodiscard]] Result<OnceResult> run(std::string_view key, std::string_view parameters,
                                       Work&& work, const OnceOptions& options = {}) const {
    return run_once<Open, typename Driver::Transaction>(
        Driver::begin_once(connection_, key, parameters, options), work,
        [&](const std::string& result) {
          return Driver::store_result(connection_, key, parameters, result);
        });
  }

  // Deletes results stored more than `age` ago by the database's clock, and tells how many. A key
  // that is forgotten would run again: choose an age beyond the last possible repeat.
  // Fails with `invalid` inside a transaction, `unavailable` if it cannot be written.
  [[nodiscard]] Result<std::int64_t> forget_older_than(std::chrono::seconds age) const {
    return Driver::forget_results(connection_, age);
  }

 private:
  explicit Once(Handle* connection) : connection_(connection) {}

  Handle* connection_;
};

}  // namespace leasehold::sql
