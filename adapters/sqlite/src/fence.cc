#include "leasehold/sqlite/fence.h"

#include "database.h"
#include "fence_table.h"
#include "guard.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"

namespace leasehold::sqlite {

namespace {

// Completes a refusal with both numbers. The write lock of the refused statement is still held, so
// the mark is the one that refused.
Error explain(Connection connection, const ResourceName& resource, const Token& token, Entry entry,
              Error error) {
  auto mark = read_threshold(connection, resource);
  if (!mark || !*mark) {
    error.message = "resource " + kit::in_quotes(resource.str()) + " refused token " +
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
  return make_fence(Connection(db));
}

Status remove_fence(sqlite3* db) {
  return drop_fence(Connection(db));
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

Status Driver::check_fence(sqlite3* db) {
  return sqlite::check_fence(Connection(db));
}

Status Driver::enter(sqlite3* db, const ResourceName& resource, const Token& token, Entry entry) {
  const Connection connection(db);
  if (!connection.in_transaction()) {
    return fail(ErrorCode::invalid,
                "no transaction is open: entering and writing must be one transaction");
  }
  auto ok = insert_entry(connection, resource, token, entry);
  if (ok || ok.error().code != ErrorCode::fenced_out) return ok;
  return fail(explain(connection, resource, token, entry, std::move(ok.error())));
}

Result<Driver::Transaction> Driver::begin_entered(sqlite3* db, const ResourceName& resource,
                                                  const Token& token, Entry entry) {
  return begin_inside(Connection(db), resource, [&] { return enter(db, resource, token, entry); });
}

Status Driver::leave(sqlite3* db) {
  return leave_guards(Connection(db));
}

Status Driver::count_refusal(sqlite3* db, const ResourceName& resource) {
  return sqlite::count_refusal(Connection(db), resource);
}

Result<std::optional<FenceMark>> Driver::mark(sqlite3* db, const ResourceName& resource) {
  return read_mark(Connection(db), resource);
}

}  // namespace leasehold::sqlite
