// The transaction in which a work runs on the user's own connection. Used by Fence, Claim and Once.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "leasehold/error.h"

namespace leasehold::sql {

// What a work receives. Everything the work does on handle() is committed together, or not at all.
// The work must not end the transaction: no COMMIT, no ROLLBACK, no PREPARE TRANSACTION (savepoints
// are fine). If the transaction is over when the work returns, by the work or because the database
// rolled it back after an error that the work ignored, the caller is told `invalid`; what the work
// has committed itself, or written after that point, was not fenced and stays.
template <class Handle>
class OpenTransaction {
 public:
  explicit OpenTransaction(Handle* connection) : connection_(connection) {}
  OpenTransaction(const OpenTransaction&) = delete;
  OpenTransaction& operator=(const OpenTransaction&) = delete;

  // The connection that was given to Fence, Claim or Once.
  Handle* handle() const { return connection_; }

 private:
  Handle* connection_;
};

template <class Driver>
using OpenTransactionOf = OpenTransaction<typename Driver::Handle>;

template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<tl::expected<T, Error>> = true;

// A work takes an Open& and returns Status or Result<T>.
template <class Work, class Open>
concept TransactionWork = std::is_invocable_v<Work&, Open&> &&
    is_result<std::remove_cvref_t<std::invoke_result_t<Work&, Open&>>>;

// What the work, and so the call that runs it, returns.
template <class Work, class Open>
using AnswerOf = std::remove_cvref_t<std::invoke_result_t<Work&, Open&>>;

// Runs the work in what has begun and commits if it succeeded. An error or an exception rolls back,
// which is what the destructor of a transaction does, and is passed on.
template <class Open, class Transaction, TransactionWork<Open> Work>
AnswerOf<Work, Open> run_and_commit(Result<Transaction> begun, Work& work) {
  if (!begun) return fail(std::move(begun.error()));
  Open open(begun->handle());
  auto answer = std::invoke(work, open);
  if (!answer) return answer;
  if (auto ok = begun->commit(); !ok) return fail(std::move(ok.error()));
  return answer;
}

}  // namespace leasehold::sql
