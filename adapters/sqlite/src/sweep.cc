#include "sweep.h"

#include "kit/try.h"

namespace leasehold::sqlite {
namespace {

constexpr Millis kOverFor = std::chrono::minutes(1);

std::string after_cursor(const Sweep::What& what) {
  return what.key + " > (SELECT " + what.cursor + " FROM store)";
}

}  // namespace

Sweep::Sweep(StoreFile& file, const What& what)
    : file_(file),
      end_of_step_("SELECT max(" + what.key + "), count(*) FROM (SELECT " + what.key + " FROM " +
                   what.table + " WHERE " + after_cursor(what) + " ORDER BY " + what.key +
                   " LIMIT ?1)"),
      sweep_("DELETE FROM " + what.table + " WHERE " + after_cursor(what) + " AND " + what.key +
             " <= ?1 AND (" + what.is_over + ")"),
      stop_at_("UPDATE store SET " + what.cursor + " = ?1") {}

Status Sweep::step(std::int64_t at) {
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
  TRY(sweep->bind(1, end).bind(2, at).bind(3, nanos(kOverFor)).run());
  auto stop_at = TRY(sql(stop_at_));
  return stop_at->bind(1, is_last ? std::string() : end).run();
}

}  // namespace leasehold::sqlite
