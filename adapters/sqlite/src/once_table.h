// The table of idempotency keys, and beginning a transaction under one.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "database.h"
#include "leasehold/sql/once.h"
#include "leasehold/sqlite/transaction.h"

namespace leasehold::sqlite {

[[nodiscard]] Status make_once(Connection connection);
// `unavailable` if it is missing or has another version.
[[nodiscard]] Status check_once(Connection connection);

// What is stored under the key, if anything; `invalid` if that was with other parameters.
[[nodiscard]] Result<std::optional<OnceResult>> find_result(Connection connection,
                                                            const OnceKey& key,
                                                            std::string_view parameters);

// Begins a transaction, and waits for other writers as the options say. `early` is asked before
// each try, without a lock; if it knows the result, nothing is begun.
using OnceBegun = sql::OnceBegun<detail::OwnedTransaction>;
using EarlyLook = std::function<Result<std::optional<OnceResult>>()>;
[[nodiscard]] Result<OnceBegun> begin_in_time(Connection connection, const OnceOptions& options,
                                              const EarlyLook& early);

// In the transaction that is open.
[[nodiscard]] Status store_result(Connection connection, std::string_view key,
                                  std::string_view parameters, std::string_view result);

}  // namespace leasehold::sqlite
