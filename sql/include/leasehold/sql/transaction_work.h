// Running a user's work in a transaction at the resource, for every fence that has transactions.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "leasehold/error.h"

namespace leasehold::sql {

template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<tl::expected<T, Error>> = true;

// A work takes an Open& and returns Status or Result<T>.
template <class Work, class Open>
concept TransactionWork = std::is_invocable_v<Work&, Open&> &&
    is_result<std::remove_cvref_t<std::invoke_result_t<Work&, Open&>>>;

// Runs the work and commits if it succeeded. An error or an exception rolls back, which is what the
// destructor of `transaction` does, and is passed on.
template <class Open, class Owned, TransactionWork<Open> Work>
auto run_and_commit(Owned transaction, Work& work)
    -> std::remove_cvref_t<std::invoke_result_t<Work&, Open&>> {
  Open open(transaction.handle());
  auto answer = std::invoke(work, open);
  if (!answer) return answer;
  if (auto ok = transaction.commit(); !ok) return fail(std::move(ok.error()));
  return answer;
}

}  // namespace leasehold::sql
