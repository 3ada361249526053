#include "leasehold/sqlite/fence.h"

#include "database.h"
#include "fence_table.h"
#include "guard.h"
#include "kit/try.h"

namespace leasehold::sqlite {

namespace {

// Completes a refusal with both numbers. The write lock of the refused statement is still held, so
// the mark is the one that refused.
Error explain(Connection connection, const ResourceName& resource, const Token& token, Entry entry,
              Error error) {
  auto mark = read_threshold(connection, resource);
  if (!mark || !*mark) {
    error.message = "resource '" + resource.str() + "' refused token " +
                    std::to_string(token.number.value()) + "; its mark cannot be read";
    return error;
  }
  Error refused = fence::refusal(resource, token, **mark, /*single=*/entry == Entry::single);
  refused.store_words = std::move(error.store_words);
  return refused;
}

// Maps its error while the statement lives: finalizing it would be SQLite's latest call.
Status insert_entry(Connection connection, const ResourceName& resource, const Token& token,
                    Entry entry) {
  const bool had_read = has_snapshot(connection);
  auto insert = connection.prepare(
      "INSERT INTO main.leasehold_enter(resource, token, lineage, request, single_entry)"
      " VALUES(?1, ?2, ?3, ?4, ?5)");
  if (!insert) return fail(entry_error(connection, std::move(insert.error()), had_read));
  const std::string lineage = token.lineage.str();
  const std::string request = token.request.hex();
  insert->bind(1, resource.str())
      .bind(2, token.number.value())
      .bind(3, lineage)
      .bind(4, request)
      .bind(5, std::int64_t{entry == Entry::single});
  auto ok = insert->run();
  if (!ok) return fail(entry_error(connection, std::move(ok.error()), had_read));
  return {};
}

}  // namespace

Status install_fence(sqlite3* db) {
  return install_fence_table(Connection(db));
}

Status remove_fence(sqlite3* db) {
  return remove_fence_table(Connection(db));
}

Status guard_table(sqlite3* db, std::string_view table, const ResourceName& resource) {
  return add_guard(Connection(db), table, resource);
}

Status unguard_table(sqlite3* db, std::string_view table) {
  return remove_guard(Connection(db), table);
}

Result<std::vector<FenceMark>> fence_marks(sqlite3* db) {
  return read_marks(Connection(db));
}

Result<Fence> Fence::open(sqlite3* db, std::string_view resource) {
  auto name = TRY(ResourceName::parse(resource));
  return open(db, std::move(name));
}

Result<Fence> Fence::open(sqlite3* db, ResourceName resource) {
  TRY(check_fence_table(Connection(db)));
  return Fence(db, std::move(resource));
}

Status Fence::enter(const Token& token, Entry entry) const {
  const Connection connection(db_);
  if (!connection.in_transaction()) {
    return fail(ErrorCode::invalid,
                "no transaction is open: entering and writing must be one transaction");
  }
  auto ok = insert_entry(connection, resource_, token, entry);
  if (ok || ok.error().code != ErrorCode::fenced_out) return ok;
  return fail(explain(connection, resource_, token, entry, std::move(ok.error())));
}

Status Fence::leave() const {
  return leave_guards(Connection(db_));
}

Result<detail::OwnedTransaction> Fence::begin(const Token& token, Entry entry) const {
  Error refused(ErrorCode::internal, {});
  {
    auto transaction = detail::OwnedTransaction::begin(db_);
    if (!transaction) return transaction;
    auto entered = enter(token, entry);
    if (entered) return transaction;
    refused = std::move(entered.error());
  }
  return fail(counted(Connection(db_), resource_, std::move(refused)));
}

Status Fence::count_refusal() const {
  return sqlite::count_refusal(Connection(db_), resource_);
}

Result<std::optional<FenceMark>> Fence::mark() const {
  return read_mark(Connection(db_), resource_);
}

}  // namespace leasehold::sqlite
