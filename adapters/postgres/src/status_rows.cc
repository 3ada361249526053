#include "status_rows.h"

#include <algorithm>

namespace leasehold::postgres {
namespace {

enum Column {
  kLock,
  kStore,
  kWaits,
  kRequest,
  kOwner,
  kToken,
  kHeldMs,
  kRemainingMs,
  kKept,
  kKnownAs,
  kCountedTo
};

Millis not_negative(std::int64_t milliseconds) {
  return Millis(std::max<std::int64_t>(milliseconds, 0));
}

std::optional<LockStatus> status_of(const Rows& rows, int row) {
  auto name = LockName::parse(rows.text(kLock, row));
  if (!name) return std::nullopt;
  LockStatus status{.lock = std::move(*name),
                    .store = rows.id<StoreId>(kStore, row),
                    .last_token = {},
                    .holders = {},
                    .waiters = {},
                    .known_as = std::string(rows.text(kKnownAs, row))};
  const auto token = TokenNumber::of(rows.number(kToken, row));
  if (token) status.last_token = *token;
  status.counted_to = rows.number(kCountedTo, row);
  const auto request = rows.id<RequestId>(kRequest, row);
  if (token && request && !rows.is_null(kRemainingMs, row)) {
    status.holders = {LockStatus::Holder{.request = *request,
                                         .token = *token,
                                         .owner = readable_label(rows.text(kOwner, row)),
                                         .held_for = not_negative(rows.number(kHeldMs, row)),
                                         .remaining = not_negative(rows.number(kRemainingMs, row)),
                                         .kept = rows.flag(kKept, row),
                                         // A lease that is alive has a millisecond left at least.
                                         .foreign = rows.number(kRemainingMs, row) == 0}};
  }
  return status;
}

}  // namespace

Result<std::vector<LockStatus>> read_status(const Rows& rows) {
  std::vector<LockStatus> locks;
  for (int row = 0; row < rows.count(); ++row) {
    if (rows.flag(kWaits, row)) {
      const auto request = rows.id<RequestId>(kRequest, row);
      if (request && !locks.empty()) {
        locks.back().waiters.push_back({*request, readable_label(rows.text(kOwner, row))});
      }
      continue;
    }
    auto status = status_of(rows, row);
    if (!status) return fail(ErrorCode::unavailable, "the table of locks has a wrong name in it");
    locks.push_back(std::move(*status));
  }
  return locks;
}

}  // namespace leasehold::postgres
