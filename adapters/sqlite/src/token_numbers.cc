#include "token_numbers.h"

#include <limits>

#include "kit/try.h"

namespace leasehold::sqlite {
namespace {

Error used_up() {
  return Error(ErrorCode::unavailable, "the token numbers of this store are used up");
}

}  // namespace

// Those that are reserved may be granted when that is on disk.
Status TokenNumbers::raise_ceiling() {
  const auto reserved = TRY(reserve());
  if (!reserved) return {};
  auto testimony = TRY(reserved_on_disk(*reserved));
  return file_.settle(testimony);
}

// Up to which number; some are not used. Nothing if somebody else was first.
Result<std::optional<std::int64_t>> TokenNumbers::reserve() {
  auto transaction = TRY(file_.begin());
  const Connection db = file_.connection();
  auto store = TRY(db.prepare("SELECT last, ceiling, reserved FROM store"));
  if (!TRY(store.step())) return fail(file_.damaged());
  const std::int64_t used = store.integer(0);
  const std::int64_t ceiling = store.integer(1);
  std::int64_t reserved = store.integer(2);
  store.reset();
  if (used < ceiling) return std::nullopt;
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  if (reserved > used) return reserved;  // by somebody who died, or by an earlier attempt
  if (used > last - file_.options().token_block) return fail(used_up());
  reserved = used + file_.options().token_block;
  auto update = TRY(db.prepare("UPDATE store SET reserved = ?1"));
  TRY(update.bind(1, reserved).run());
  if (auto ok = transaction.commit(); !ok) {
    ok.error().code = ErrorCode::unavailable;  // of the reservation; nothing was granted
    return fail(std::move(ok.error()));
  }
  return reserved;
}

// Says nothing if somebody has reserved more, or begun a new lineage, since `reserved` was read.
Result<Statement> TokenNumbers::reserved_on_disk(std::int64_t reserved) {
  auto update = file_.connection().prepare(
      "UPDATE store SET ceiling = ?1 WHERE reserved = ?1 AND ceiling < ?1");
  if (update) update->bind(1, reserved);
  return update;
}

// Nothing is granted in the new lineage before it is on disk.
Result<StoreId> TokenNumbers::rotate_store_id() {
  const StoreId id = StoreId::random(*file_.options().random);
  const auto reserved = TRY(begin_lineage(id));
  const auto settled = file_.settle_patiently([&]() -> Status {
    auto testimony = TRY(reserved_on_disk(reserved));
    return file_.settle(testimony);
  });
  TRY(after_commit(settled));
  return id;
}

// Up to which number is reserved then.
Result<std::int64_t> TokenNumbers::begin_lineage(const StoreId& id) {
  const Connection db = file_.connection();
  auto transaction = TRY(Transaction::begin(db));
  auto update = TRY(db.prepare(
      "UPDATE store SET id = ?1, ceiling = 0, reserved = min(reserved, 9223372036854775806) + 1"));
  TRY(update.bind(1, id.bytes()).run());
  auto reserved = number(db, "SELECT reserved FROM store");
  if (!reserved) return reserved;
  TRY(transaction.commit());
  return reserved;
}

}  // namespace leasehold::sqlite
