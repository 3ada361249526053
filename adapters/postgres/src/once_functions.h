// What the schema of idempotency keys can do, called on somebody's connection.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "leasehold/once.h"
#include "session.h"

namespace leasehold::postgres {

[[nodiscard]] Status make_once(Session session);
[[nodiscard]] Status drop_once(Session session);
// `unavailable` if it is missing or has another version.
[[nodiscard]] Status check_once(Session session);

// The claim of one key. Both calls wait up to `wait` for who is at work under it.
class KeyClaim {
 public:
  KeyClaim(const OnceKey& key, std::string_view parameters);

  // As the first statement of a new transaction.
  [[nodiscard]] Result<Rows> begin(Session session, Millis wait) const;
  // In the transaction that is open.
  [[nodiscard]] Result<Rows> run(Session session, Millis wait) const;

 private:
  std::string key_;
  std::string parameters_;
};

// Tries a claim until it is answered or the options' time is over. An attempt that fails must leave
// no transaction open. Gives the result of earlier, or nothing: the caller is the one to work, in
// the transaction that is open.
using ClaimAttempt = std::function<Result<Rows>(Millis wait)>;
[[nodiscard]] Result<std::optional<OnceResult>> claim_in_time(const OnceOptions& options,
                                                              const ClaimAttempt& attempt);

[[nodiscard]] Status store_result(Session session, std::string_view key, std::string_view result);

}  // namespace leasehold::postgres
