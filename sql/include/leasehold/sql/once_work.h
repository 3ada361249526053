// Running a work under an idempotency key, for every Once that has transactions.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "leasehold/error.h"
#include "leasehold/once.h"
#include "leasehold/sql/transaction_work.h"

namespace leasehold::sql {

template <class Work, class Open>
concept OnceWork = std::is_invocable_r_v<Result<std::string>, Work&, Open&>;

// What beginning under a key gives: the result of earlier, or a transaction to work in.
template <class Owned>
using OnceBegun = std::variant<OnceResult, Owned>;

// Runs the work unless it has a result, stores what it returns with `store`, and commits both.
template <class Open, class Owned, OnceWork<Open> Work, class Store>
Result<OnceResult> run_once(Result<OnceBegun<Owned>> begun, Work& work, const Store& store) {
  if (!begun) return fail(std::move(begun.error()));
  if (auto* stored = std::get_if<OnceResult>(&*begun)) return std::move(*stored);
  auto work_and_store = [&](Open& transaction) -> Result<std::string> {
    Result<std::string> result = std::invoke(work, transaction);
    if (!result) return result;
    if (auto ok = store(*result); !ok) return fail(std::move(ok.error()));
    return result;
  };
  auto answer = run_and_commit<Open>(std::get<Owned>(std::move(*begun)), work_and_store);
  if (!answer) return fail(std::move(answer.error()));
  return OnceResult{std::move(*answer), false};
}

}  // namespace leasehold::sql
