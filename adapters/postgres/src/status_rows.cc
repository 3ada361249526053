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
  kCountedTo,
  kMode,
  kSlot,
  kNote,
  kPermits
};

Millis not_negative(std::int64_t milliseconds) {
  return Millis(std::max<std::int64_t>(milliseconds, 0));
}

Mode mode_in(const Rows& rows, int row) {
  return Mode::from_code(rows.number(kMode, row)).value_or(Mode::exclusive());
}

// As it is if nobody holds it.
std::optional<LockStatus> lock_in(const Rows& rows, int row) {
  auto name = LockName::parse(rows.text(kLock, row));
  if (!name) return std::nullopt;
  LockStatus status{.lock = std::move(*name),
                    .store = rows.id<StoreId>(kStore, row),
                    .last_token = {},
                    .holders = {},
                    .waiters = {},
                    .known_as = std::string(rows.text(kKnownAs, row))};
  status.counted_to = rows.number(kCountedTo, row);
  if (!rows.is_null(kPermits, row)) status.set_permits = rows.number(kPermits, row);
  return status;
}

void add_holder(LockStatus& status, const Rows& rows, int row) {
  const auto token = TokenNumber::of(rows.number(kToken, row));
  if (!token) return;
  status.last_token = std::max(status.last_token, std::optional(*token));
  const auto request = rows.id<RequestId>(kRequest, row);
  if (!request || rows.is_null(kRemainingMs, row)) return;
  const Mode mode = mode_in(rows, row);
  status.holders.push_back(
      {.request = *request,
       .token = *token,
       .owner = readable_label(rows.text(kOwner, row)),
       .held_for = not_negative(rows.number(kHeldMs, row)),
       .remaining = not_negative(rows.number(kRemainingMs, row)),
       .kept = rows.flag(kKept, row),
       // A lease that is alive has a millisecond left at least.
       .foreign = rows.number(kRemainingMs, row) == 0,
       .mode = mode,
       .slot = mode.is_permit() ? std::optional(Slot{rows.number(kSlot, row)}) : std::nullopt,
       .note = readable_note(rows.text(kNote, row))});
}

void add_waiter(LockStatus& status, const Rows& rows, int row) {
  const auto request = rows.id<RequestId>(kRequest, row);
  if (!request) return;
  status.waiters.push_back({*request, readable_label(rows.text(kOwner, row)), mode_in(rows, row),
                            readable_note(rows.text(kNote, row))});
}

}  // namespace

// Each lock has a row, with its exclusive holder, if any; then come those who share it, then those
// who wait.
Result<std::vector<LockStatus>> read_status(const Rows& rows) {
  std::vector<LockStatus> locks;
  for (int row = 0; row < rows.count(); ++row) {
    if (rows.flag(kWaits, row)) {
      if (!locks.empty()) add_waiter(locks.back(), rows, row);
      continue;
    }
    if (locks.empty() || locks.back().lock.str() != rows.text(kLock, row)) {
      auto status = lock_in(rows, row);
      if (!status) return fail(ErrorCode::unavailable, "the table of locks has a wrong name in it");
      locks.push_back(std::move(*status));
    }
    add_holder(locks.back(), rows, row);
  }
  return locks;
}

}  // namespace leasehold::postgres
