#include "record_table.h"

#include "kit/try.h"
#include "store_base/blocking_store.h"

namespace leasehold::sqlite {
namespace {

// In on_disk. A record that is not known to be there has another number, below kForgotten.
constexpr std::int64_t kOnDisk = 1;
constexpr std::int64_t kForgotten = -1;

std::int64_t new_number(Random& random) {
  return kForgotten - 1 - static_cast<std::int64_t>(random.next() >> 2);
}

}  // namespace

RecordTable::RecordTable(StoreFile& file)
    : file_(file),
      recall_("SELECT parameters, result, on_disk FROM once WHERE lock = ?1 AND key = ?2"),
      record_(
          "INSERT INTO once(lock, key, parameters, result, on_disk) VALUES(?1, ?2, ?3, ?4, ?5)"
          " ON CONFLICT DO UPDATE SET parameters = ?3, result = ?4, on_disk = ?5"
          " WHERE on_disk = -1"),
      stored_("SELECT on_disk FROM once WHERE lock = ?1 AND key = ?2"),
      is_on_disk_("UPDATE once SET on_disk = 1 WHERE lock = ?1 AND key = ?2 AND on_disk = ?3"),
      mark_("UPDATE once SET on_disk = -1 WHERE lock = ?1 AND key = ?2 AND on_disk <> -1"),
      remove_("DELETE FROM once WHERE lock = ?1 AND key = ?2 AND on_disk = ?3"),
      holds_(
          "SELECT 1 FROM lock WHERE name = ?1 AND request = ?2 AND expires_at > ?3 AND kept = 0"
          " UNION ALL SELECT 1 FROM holder"
          " WHERE request = ?2 AND lock = ?1 AND expires_at > ?3 AND kept = 0") {}

Result<std::optional<OnceRecord>> RecordTable::recall(const LockName& lock,
                                                      const std::string& key) {
  auto statement = TRY(sql(recall_));
  std::optional<OnceRecord> found;
  std::int64_t on_disk = 0;
  {
    const Use row(*statement);
    row->bind(1, lock.str()).bind(2, key);
    const auto there = TRY(row->step());
    if (!there) return std::nullopt;
    found = OnceRecord{std::string(row->text(0)), std::string(row->text(1))};
    on_disk = row->integer(2);
  }
  if (on_disk == kOnDisk) return found;
  // Who stored it, or forgot it, may have died before that was on disk.
  const bool forgotten = on_disk == kForgotten;
  TRY(settle(forgotten ? remove_ : is_on_disk_, lock, key, on_disk));
  if (forgotten) return std::nullopt;
  return found;
}

Status RecordTable::settle(Prepared& testimony, const LockName& lock, const std::string& key,
                           std::int64_t on_disk) {
  return file_.settle_patiently([&]() -> Status {
    auto statement = TRY(sql(testimony));
    return file_.settle(statement->bind(1, lock.str()).bind(2, key).bind(3, on_disk));
  });
}

Status RecordTable::record(const LockName& lock, const RequestId& request, const std::string& key,
                           const OnceRecord& what) {
  const auto on_disk = TRY(store(lock, request, key, what));
  if (on_disk == kOnDisk) return {};
  return after_commit(settle(is_on_disk_, lock, key, on_disk));
}

Result<std::int64_t> RecordTable::store(const LockName& lock, const RequestId& request,
                                        const std::string& key, const OnceRecord& what) {
  auto transaction = TRY(file_.begin());
  auto holds = TRY(sql(holds_));
  {
    const Use row(*holds);
    row->bind(1, lock.str()).bind(2, request.bytes()).bind(3, file_.now());
    const auto held = TRY(row->step());
    if (!held) return fail(not_recorded(lock));
  }
  auto insert = TRY(sql(record_));
  insert->bind(1, lock.str()).bind(2, key).bind(3, what.parameters).bind(4, what.result);
  TRY(insert->bind(5, new_number(*file_.options().random)).run());
  const auto on_disk = TRY(on_disk_of(lock, key));
  if (!on_disk) return fail(file_.damaged());
  TRY(transaction.commit());
  return *on_disk;
}

Result<std::optional<std::int64_t>> RecordTable::on_disk_of(const LockName& lock,
                                                            const std::string& key) {
  auto statement = TRY(sql(stored_));
  const Use row(*statement);
  if (!TRY(row->bind(1, lock.str()).bind(2, key).step())) return std::nullopt;
  return row->integer(0);
}

Result<std::vector<std::string>> RecordTable::list_keys(const LockName& lock) {
  auto row = TRY(file_.connection().prepare(
      "SELECT key FROM once WHERE lock = ?1 AND on_disk <> -1 ORDER BY key"));
  row.bind(1, lock.str());
  std::vector<std::string> keys;
  while (TRY(row.step())) keys.emplace_back(row.text(0));
  return keys;
}

// Marked first: the record goes when the mark is on disk.
Result<bool> RecordTable::forget(const LockName& lock, const std::string& key) {
  auto mark = TRY(sql(mark_));
  TRY(mark->bind(1, lock.str()).bind(2, key).run());
  const bool was_there = file_.connection().changes() > 0;
  if (!TRY(on_disk_of(lock, key))) return false;
  TRY(after_commit(settle(remove_, lock, key, kForgotten)));
  return was_there;
}

}  // namespace leasehold::sqlite
