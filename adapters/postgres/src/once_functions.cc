#include "once_functions.h"

#include <algorithm>
#include <utility>

#include "bytes.h"
#include "kit/try.h"
#include "once_schema.h"
#include "part.h"
#include "waiting/backoff.h"

namespace leasehold::postgres {
namespace {

constexpr Part kOnce = {"leasehold_once",
                        kOnceVersion,
                        kOnceSchema,
                        "Once",
                        "with `leasehold once install` or install_once()",
                        "all results, so that a repeat works again"};

constexpr NamedStatement kClaim = {
    "leasehold_once_claim_1",
    "SELECT pg_catalog.encode(leasehold_once.claim($1, pg_catalog.decode($2, 'hex'), $3), "
    "'hex'), " LEASEHOLD_TRANSACTION_ID};

// So long a stop is not heard, since the server waits.
constexpr Millis kDeaf{100};
constexpr Millis kLongest = std::chrono::hours(24);

std::string number(Millis wait) {
  return std::to_string(std::clamp(wait, Millis(0), kLongest).count());
}

}  // namespace

Status make_once(Session session) {
  return install_part(session, kOnce);
}

Status drop_once(Session session) {
  return remove_part(session, kOnce);
}

Status check_once(Session session) {
  return check_part(session, kOnce);
}

KeyClaim::KeyClaim(const OnceKey& key, std::string_view parameters)
    : key_(key.str()), parameters_(hex_of(parameters)) {}

Result<Rows> KeyClaim::begin(Session session, Millis wait) const {
  return session.begin_with(kClaim, {key_.c_str(), parameters_.c_str(), number(wait).c_str()});
}

Result<Rows> KeyClaim::run(Session session, Millis wait) const {
  return session.run(kClaim.sql, {key_.c_str(), parameters_.c_str(), number(wait).c_str()});
}

Result<std::optional<OnceResult>> claim_in_time(const OnceOptions& options,
                                                const ClaimAttempt& attempt) {
  for (waiting::Backoff backoff(options.wait, options.stop);;) {
    const Millis left = backoff.left();
    auto rows = attempt(options.stop.stop_possible() ? std::min(left, kDeaf) : left);
    if (rows) {
      if (rows->is_null(0)) return std::nullopt;
      auto result = TRY(bytes_of(rows->text(0)));
      return OnceResult{std::move(result), true};
    }
    if (!is_too_long(rows.error()) && !is_conflict(rows.error())) {
      return fail(std::move(rows.error()));
    }
    if (!backoff.pause()) {
      return fail(backoff.give_up("another transaction is at work, perhaps under the same key"));
    }
  }
}

Status store_result(Session session, std::string_view key, std::string_view result) {
  TRY(leasehold::detail::check_once_result(result));
  TRY(session.check_after_work());
  TRY(session.check());
  TRY(session.run("SELECT leasehold_once.store($1, pg_catalog.decode($2, 'hex'))",
                  {std::string(key).c_str(), hex_of(result).c_str()}));
  return {};
}

}  // namespace leasehold::postgres
