// The transaction in which a work runs on the user's own connection. Used by Fence, Claim and Once.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "leasehold/error.h"

struct sqlite3;

namespace leasehold::sqlite {

class Transaction;

// What a work receives. Everything the work does on handle() is committed together, or not at all.
// The work must not end the transaction: no COMMIT, no ROLLBACK (savepoints are fine). If the
// transaction is over when the work returns, by the work or because SQLite rolled it back after an
// error that the work ignored, the caller is told `invalid`, and what the work wrote after that
// point was neither fenced nor undone.
class OpenTransaction {
 public:
  explicit OpenTransaction(sqlite3* db) : db_(db) {}
  OpenTransaction(const OpenTransaction&) = delete;
  OpenTransaction& operator=(const OpenTransaction&) = delete;

  // The connection that was given to Fence, Claim or Once.
  sqlite3* handle() const { return db_; }

 private:
  sqlite3* db_;
};

namespace detail {

template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<tl::expected<T, Error>> = true;

// A work takes an OpenTransaction& and returns Status or Result<T>.
template <class Work>
concept TransactionWork = std::is_invocable_v<Work&, OpenTransaction&> &&
    is_result<std::remove_cvref_t<std::invoke_result_t<Work&, OpenTransaction&>>>;

// BEGIN IMMEDIATE … COMMIT; rolls back unless committed. Not thread safe.
class OwnedTransaction {
 public:
  // `invalid` if a transaction is open already, `unavailable` if the write lock is not to be had.
  [[nodiscard]] static Result<OwnedTransaction> begin(sqlite3* db);
  OwnedTransaction(OwnedTransaction&&) noexcept;
  OwnedTransaction& operator=(OwnedTransaction&&) = delete;
  ~OwnedTransaction();

  sqlite3* handle() const { return db_; }
  // `invalid` if the transaction is over already or a deferred constraint is broken, `unavailable`
  // if it was not written, `outcome_unknown` if the disk failed while it was.
  [[nodiscard]] Status commit();

 private:
  OwnedTransaction(sqlite3* db, std::unique_ptr<Transaction> inner);
  sqlite3* db_;
  std::unique_ptr<Transaction> inner_;
};

// Runs the work and commits if it succeeded. An error or an exception rolls back and is passed on.
template <TransactionWork Work>
auto run_and_commit(OwnedTransaction transaction, Work& work)
    -> std::remove_cvref_t<std::invoke_result_t<Work&, OpenTransaction&>> {
  OpenTransaction open(transaction.handle());
  auto answer = std::invoke(work, open);
  if (!answer) return answer;
  if (auto ok = transaction.commit(); !ok) return fail(std::move(ok.error()));
  return answer;
}

}  // namespace detail
}  // namespace leasehold::sqlite
