#include "free_locks.h"

#include "kit/try.h"

namespace leasehold::sqlite {
namespace {

constexpr Millis kFreeFor = std::chrono::minutes(1);

}  // namespace

// What ended at a time to come ended before this machine was restored from a snapshot.
FreeLocks::FreeLocks(StoreFile& file)
    : file_(file),
      end_of_step_(
          "SELECT max(name), count(*) FROM (SELECT name FROM lock"
          " WHERE name > (SELECT swept_to FROM store) ORDER BY name LIMIT ?1)"),
      sweep_(
          "DELETE FROM lock WHERE name > (SELECT swept_to FROM store) AND name <= ?1"
          " AND (expires_at <= ?2 - ?3 OR (request IS NULL AND expires_at > ?2))"),
      stop_at_("UPDATE store SET swept_to = ?1") {}

Status FreeLocks::sweep_step(std::int64_t at) {
  std::string end;
  bool is_last = false;
  {
    auto statement = TRY(sql(end_of_step_));
    const Use row(*statement);
    TRY(row->bind(1, kRowsPerStep).step());
    end = row->text(0);
    is_last = row->integer(1) < kRowsPerStep;
  }
  auto sweep = TRY(sql(sweep_));
  TRY(sweep->bind(1, end).bind(2, at).bind(3, nanos(kFreeFor)).run());
  auto stop_at = TRY(sql(stop_at_));
  return stop_at->bind(1, is_last ? std::string() : end).run();
}

}  // namespace leasehold::sqlite
