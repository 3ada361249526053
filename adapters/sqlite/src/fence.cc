#include "leasehold/sqlite/fence.h"

#include <variant>

#include "database.h"
#include "fence/refusal.h"
#include "fence/rule.h"
#include "fence_table.h"
#include "guard.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"

namespace leasehold::sqlite {

namespace {

// Completes a refusal with both numbers. The write lock of the refused statement is still held, so
// the mark is the one that refused.
Error explain(Connection connection, const ResourceName& resource, const fence::Attempt& attempt,
              Error error) {
  const auto here = mark_here(connection, resource, attempt.token.lineage.store);
  const auto verdict = here ? fence::judge(here->mark, attempt) : fence::Repeat{};
  const auto* refuse = std::get_if<fence::Refuse>(&verdict);
  if (refuse == nullptr) {
    error.message = "resource " + kit::in_quotes(resource.str()) + " refused token " +
                    std::to_string(attempt.token.number.value()) + "; its mark cannot be read";
    return error;
  }
  Error refused = fence::refusal(resource, attempt, refuse->why, here->mark);
  refused.store_words = std::move(error.store_words);
  return refused;
}

// Maps its error while the statement lives: finalizing it would be SQLite's latest call.
Status insert_entry(Connection connection, const ResourceName& resource,
                    const fence::Attempt& attempt, Snapshot before) {
  const bool writes = attempt.access == Access::write;
  auto insert = connection.prepare(
      writes ? "INSERT INTO main.leasehold_enter(resource, token, lineage, request, single_entry)"
               " VALUES(?1, ?2, ?3, ?4, ?5)"
             : "INSERT INTO main.leasehold_enter_to_read(resource, token, lineage, request)"
               " VALUES(?1, ?2, ?3, ?4)");
  if (!insert) return fail(entry_error(connection, std::move(insert.error()), before));
  const std::string lineage = attempt.token.lineage.str();
  const std::string request = attempt.token.request.hex();
  insert->bind(1, resource.str())
      .bind(2, attempt.token.number.value())
      .bind(3, lineage)
      .bind(4, request);
  if (writes) insert->bind(5, std::int64_t{attempt.single});
  auto ok = insert->run();
  if (!ok) return fail(entry_error(connection, std::move(ok.error()), before));
  return {};
}

Status enter_as(Connection connection, const ResourceName& resource, const fence::Attempt& attempt,
                Snapshot before) {
  auto ok = insert_entry(connection, resource, attempt, before);
  if (ok || ok.error().code != ErrorCode::fenced_out) return ok;
  return fail(explain(connection, resource, attempt, std::move(ok.error())));
}

Status check_inside(Connection connection, const char* what) {
  if (connection.in_transaction()) return {};
  return fail(ErrorCode::invalid, "no transaction is open: entering and " + std::string(what) +
                                      " must be one transaction");
}

enum class Door {
  open,     // the mark is high enough already
  old,      // the same, but a sweep may think that nobody uses it
  too_low,  // the mark must be raised first
};

// In the snapshot of the transaction that is open.
Result<Door> door(Connection connection, const ResourceName& resource,
                  const fence::Attempt& attempt) {
  auto here = mark_here(connection, resource, attempt.token.lineage.store);
  if (!here) return fail(entry_error(connection, std::move(here.error()), Snapshot::none));
  const auto verdict = fence::judge(here->mark, attempt);
  if (const auto* refuse = std::get_if<fence::Refuse>(&verdict)) {
    return fail(fence::refusal(resource, attempt, refuse->why, here->mark));
  }
  if (std::get<fence::Enter>(verdict).next != here->mark) return Door::too_low;
  return here->is_recent ? Door::open : Door::old;
}

Status raise_mark(Connection connection, const ResourceName& resource,
                  const fence::Attempt& attempt) {
  auto transaction = TRY(Transaction::begin(connection));
  TRY(enter_as(connection, resource, attempt, Snapshot::none));
  return transaction.commit();
}

// The mark is raised in a transaction of its own, which must have the write lock. What is read
// needs none, and is read beside the mark in one snapshot: a writer may have come in between.
Result<Driver::Transaction> begin_below_the_mark(sqlite3* db, const ResourceName& resource,
                                                 const fence::Attempt& attempt) {
  const Connection connection(db);
  bool raised = false;
  for (bool tried = false;; tried = true) {
    auto reading = TRY(Driver::Transaction::begin_reading(db));
    const Door found = TRY(door(connection, resource, attempt));
    if (found == Door::open || (found == Door::old && tried)) {
      if (!raised) TRY(connection.sync_what_was_read());
      return reading;
    }
    { const auto ended = std::move(reading); }
    auto ok = raise_mark(connection, resource, attempt);
    if (!ok && found == Door::too_low) return fail(std::move(ok.error()));
    raised = raised || ok;
  }
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
  TRY(check_inside(connection, "writing"));
  return enter_as(connection, resource, {.token = token, .single = entry == Entry::single},
                  snapshot_of(connection));
}

Result<Driver::Transaction> Driver::begin_entered(sqlite3* db, const ResourceName& resource,
                                                  const Token& token, Entry entry) {
  return begin_inside(Connection(db), resource, [&] { return enter(db, resource, token, entry); });
}

Status Driver::enter_to_read(sqlite3* db, const ResourceName& resource, const Token& token) {
  const Connection connection(db);
  TRY(check_inside(connection, "reading"));
  auto before = snapshot_of(connection);
  const fence::Attempt attempt{.token = token, .access = Access::read};
  const Door found = TRY(door(connection, resource, attempt));
  const bool has_looked = before == Snapshot::none && snapshot_of(connection) != Snapshot::none;
  if (has_looked) before = Snapshot::of_mark;
  if (found == Door::too_low) return enter_as(connection, resource, attempt, before);
  if (found == Door::old) {
    // If somebody is in the way, the next reader notes the time. Some failures end the transaction.
    auto noted = enter_as(connection, resource, attempt, before);
    if (!noted && !connection.in_transaction()) return noted;
  }
  return connection.sync_what_was_read();
}

Result<Driver::Transaction> Driver::begin_reading(sqlite3* db, const ResourceName& resource,
                                                  const Token& token) {
  const fence::Attempt attempt{.token = token, .access = Access::read};
  const auto begin = [&] { return begin_below_the_mark(db, resource, attempt); };
  return begin_inside(Connection(db), resource, begin, [] { return Status(); });
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
