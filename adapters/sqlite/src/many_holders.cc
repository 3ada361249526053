#include "many_holders.h"

#include <algorithm>

#include "kit/try.h"
#include "store_base/busy_label.h"

namespace leasehold::sqlite {
namespace {

// Whoever repeats a release does so in the process that made the first attempt, and soon.
constexpr std::size_t kReleasesRemembered = 1024;

constexpr std::string_view kColumns =
    "SELECT request, mode, slot, token, store, owner, note, granted_at, expires_at, ttl, kept"
    " FROM holder";

std::string select(std::string_view rest) {
  return std::string(kColumns).append(rest);
}

}  // namespace

std::string ManyHolders::Holder::label() const {
  return busy_label(readable_label(owner), kept);
}

ManyHolders::ManyHolders(StoreFile& file)
    : file_(file),
      sweep_(file, {.table = "holder",
                    .key = "lock",
                    .cursor = "holders_swept_to",
                    .is_over = "expires_at <= ?2 - ?3"}),
      find_(select(" WHERE request = ?1 AND expires_at > ?2 AND kept = 0")),
      any_(select(" WHERE lock = ?1 AND expires_at > ?2 ORDER BY slot LIMIT 1")),
      drop_ended_("DELETE FROM holder WHERE lock = ?1 AND expires_at <= ?2"),
      count_from_(
          "UPDATE holder SET granted_at = ?2, expires_at = ?2 + ttl"
          " WHERE lock = ?1 AND expires_at - ?2 > ttl"),
      all_(select(" WHERE lock = ?1 AND expires_at > ?2 ORDER BY slot")),
      look_(select(" WHERE lock = ?1 AND expires_at > ?2 ORDER BY token")),
      add_(
          "INSERT INTO holder(request, lock, mode, slot, token, store, owner, note, granted_at,"
          " expires_at, ttl, kept) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9 + ?10, ?10, 0)"
          " ON CONFLICT(request) DO UPDATE SET mode = ?3, slot = ?4, token = ?5, store = ?6,"
          " granted_at = ?9, expires_at = ?9 + ?10, ttl = ?10, kept = 0"),
      renew_(
          "UPDATE holder SET expires_at = ?2 + ?3, ttl = ?3"
          " WHERE request = ?1 AND expires_at > ?2 AND kept = 0"),
      keep_(
          "UPDATE holder SET kept = 1, expires_at = ?2 + ?3, ttl = ?3"
          " WHERE request = ?1 AND expires_at > ?2 AND kept = 0"),
      release_("DELETE FROM holder WHERE request = ?1 AND expires_at > ?2 AND kept <= ?3") {}

Result<ManyHolders::Holder> ManyHolders::read(const Statement& row) const {
  const auto request = row.id<RequestId>(0);
  const auto mode = Mode::from_code(row.integer(1));
  const auto token = TokenNumber::of(row.integer(3));
  const auto store = row.id<StoreId>(4);
  if (!request || !mode || !token || !store) return fail(file_.damaged());
  return Holder{.request = *request,
                .mode = *mode,
                .slot = mode->is_permit() ? std::optional(Slot{row.integer(2)}) : std::nullopt,
                .token = *token,
                .store = *store,
                .owner = std::string(row.text(5)),
                .note = std::string(row.text(6)),
                .granted_at = row.integer(7),
                .expires_at = row.integer(8),
                .ttl = row.integer(9),
                .kept = row.integer(10) != 0};
}

Result<std::optional<ManyHolders::Holder>> ManyHolders::find(const RequestId& request,
                                                             std::int64_t at) {
  auto statement = TRY(sql(find_));
  const Use row(*statement);
  row->bind(1, request.bytes()).bind(2, at);
  if (!TRY(row->step())) return std::nullopt;
  return read(*row);
}

Result<std::optional<ManyHolders::Holder>> ManyHolders::any(const LockName& lock, std::int64_t at) {
  auto statement = TRY(sql(any_));
  const Use row(*statement);
  row->bind(1, lock.str()).bind(2, at);
  if (!TRY(row->step())) return std::nullopt;
  return read(*row);
}

Result<std::vector<ManyHolders::Holder>> ManyHolders::read_all(Prepared& which,
                                                               const LockName& lock,
                                                               std::int64_t at) {
  auto statement = TRY(sql(which));
  const Use row(*statement);
  row->bind(1, lock.str()).bind(2, at);
  std::vector<Holder> holders;
  while (TRY(row->step())) {
    auto holder = TRY(read(*row));
    holders.push_back(std::move(holder));
  }
  return holders;
}

Result<std::vector<ManyHolders::Holder>> ManyHolders::all(const LockName& lock, std::int64_t at) {
  for (Prepared* const change : {&drop_ended_, &count_from_}) {
    auto statement = TRY(sql(*change));
    TRY(statement->bind(1, lock.str()).bind(2, at).run());
  }
  return read_all(all_, lock, at);
}

Result<std::vector<ManyHolders::Holder>> ManyHolders::look(const LockName& lock, std::int64_t at) {
  return read_all(look_, lock, at);
}

Status ManyHolders::add(const AcquireCall& call, const Granted& granted, std::int64_t at) {
  auto statement = TRY(sql(add_));
  statement->bind(1, call.request.bytes()).bind(2, call.lock.str()).bind(3, call.mode.code());
  statement->bind(4, granted.slot.value_or(Slot{}).number).bind(5, granted.token.value());
  statement->bind(6, granted.store.bytes()).bind(7, call.owner.str()).bind(8, call.note.str());
  return statement->bind(9, at).bind(10, nanos(call.ttl.length())).run();
}

Result<bool> ManyHolders::run(Statement& statement) {
  TRY(statement.run());
  return file_.connection().changes() == 1;
}

Result<bool> ManyHolders::renew(const RenewCall& call, std::int64_t at) {
  auto statement = TRY(sql(renew_));
  statement->bind(1, call.request.bytes()).bind(2, at).bind(3, nanos(call.ttl.length()));
  return run(*statement);
}

Result<bool> ManyHolders::keep(const ReleaseCall& call, std::int64_t at) {
  auto statement = TRY(sql(keep_));
  statement->bind(1, call.request.bytes()).bind(2, at).bind(3, nanos(call.keep_for));
  const bool kept = TRY(run(*statement));
  if (kept) remember_release(call.request);
  return kept || std::ranges::count(released_, call.request) > 0;
}

Result<bool> ManyHolders::release(const RequestId& request, std::int64_t at) {
  auto statement = TRY(sql(release_));
  statement->bind(1, request.bytes()).bind(2, at).bind(3, std::int64_t{0});
  const bool released = TRY(run(*statement));
  if (released) remember_release(request);
  return released || std::ranges::count(released_, request) > 0;
}

Result<bool> ManyHolders::force_release(const RequestId& seen, std::int64_t at) {
  auto statement = TRY(sql(release_));
  statement->bind(1, seen.bytes()).bind(2, at).bind(3, std::int64_t{1});
  return run(*statement);
}

void ManyHolders::remember_release(const RequestId& request) {
  if (released_.size() == kReleasesRemembered) released_.pop_front();
  released_.push_back(request);
}

}  // namespace leasehold::sqlite
