#include "outbox.h"

#include <set>
#include <span>
#include <string>
#include <utility>

#include "fence_table.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "leasehold/sqlite/fence.h"
#include "leasehold/sqlite/outbox.h"
#include "name_sql.h"
#include "schema.h"
#include "user_file.h"

namespace leasehold::sqlite {
namespace {

constexpr Part kPart{"outbox", 1, "install it with `leasehold outbox install` or install_outbox()"};

constexpr const char* kNow = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)";

// The name of the constraint is what a program is told.
std::string a_name(const std::string& column) {
  return column + " TEXT NOT NULL CONSTRAINT \"leasehold: invalid: " + column +
         " must be 1 to 512 bytes of text without control characters\" CHECK(NOT (" +
         not_text(column) + " OR " + not_a_name(column) + "))";
}

// AUTOINCREMENT: a number is never given twice, also when the last row was deleted.
std::string table() {
  return "CREATE TABLE main.leasehold_outbox(id INTEGER PRIMARY KEY AUTOINCREMENT, " +
         a_name("key") + ", " + a_name("topic") +
         ", payload BLOB NOT NULL CONSTRAINT \"leasehold: invalid: payload must be text or a blob "
         "of"
         " at most 1 MiB\" CHECK(typeof(payload) IN ('text', 'blob')"
         " AND length(CAST(payload AS BLOB)) <= " +
         std::to_string(kMaxOutboxPayload) + "), " + a_name("idempotency_key") +
         " UNIQUE DEFAULT (lower(hex(randomblob(16)))), put_at INTEGER NOT NULL DEFAULT (" + kNow +
         "), attempts INTEGER NOT NULL DEFAULT 0, last_error TEXT,"
         " set_aside INTEGER NOT NULL DEFAULT 0, skipped INTEGER NOT NULL DEFAULT 0,"
         " done_at INTEGER);"
         "CREATE INDEX main.leasehold_outbox_waiting ON leasehold_outbox(id)"
         " WHERE done_at IS NULL;"
         "CREATE INDEX main.leasehold_outbox_set_aside ON leasehold_outbox(key)"
         " WHERE set_aside = 1 AND done_at IS NULL;"
         "CREATE INDEX main.leasehold_outbox_done ON leasehold_outbox(done_at)"
         " WHERE done_at IS NOT NULL;";
}

constexpr const char* kKeyGoesOn =
    "NOT EXISTS(SELECT 1 FROM main.leasehold_outbox s WHERE s.key = o.key AND s.set_aside = 1"
    " AND s.done_at IS NULL)";

// Also for a table that was made without it: then a search is slow, and no less right.
constexpr const char* kIndexByKey =
    "CREATE INDEX IF NOT EXISTS main.leasehold_outbox_by_key ON leasehold_outbox(key, id)"
    " WHERE done_at IS NULL";

Status install(Connection connection) {
  TRY(install_fence_table(connection));
  return connection.durably([&] {
    auto installed = install_part(connection, kPart, table());
    return installed ? connection.exec(kIndexByKey) : installed;
  });
}

std::string bytes_of(const Statement& statement, int column) {
  const auto bytes = statement.blob(column);
  return std::string(bytes.begin(), bytes.end());
}

Status not_one(std::int64_t id, const char* what) {
  return fail(ErrorCode::invalid, "message " + std::to_string(id) + " " + what);
}

Status mark_delivered(Connection connection, std::int64_t id) {
  auto update = TRY(connection.prepare(
      std::string("UPDATE main.leasehold_outbox SET last_error = NULL, done_at = ") + kNow +
      " WHERE id = ?1 AND done_at IS NULL"));
  TRY(update.bind(1, id).run());
  return connection.changes() == 1 ? Status() : not_one(id, "does not wait for delivery any more");
}

Result<bool> mark_failed(Connection connection, std::int64_t id, const std::string& why,
                         std::int64_t attempts) {
  auto update = TRY(connection.prepare(
      "UPDATE main.leasehold_outbox SET attempts = attempts + 1, last_error = ?2,"
      " set_aside = attempts + 1 >= ?3 WHERE id = ?1 AND done_at IS NULL RETURNING set_aside"));
  const std::string text = kit::storable(why);
  auto row = TRY(update.bind(1, id).bind(2, std::string_view(text)).bind(3, attempts).step());
  if (!row) return fail(not_one(id, "does not wait for delivery any more").error());
  return update.integer(0) == 1;
}

Result<std::vector<OutboxProblem>> read_problems(Connection connection) {
  auto select = TRY(connection.prepare(
      "SELECT id, key, topic, idempotency_key, attempts, last_error,"
      " (SELECT count(*) FROM main.leasehold_outbox b WHERE b.key = o.key AND b.done_at IS NULL"
      "  AND b.id > o.id)"
      " FROM main.leasehold_outbox o WHERE set_aside = 1 AND done_at IS NULL ORDER BY id"));
  std::vector<OutboxProblem> problems;
  for (;;) {
    auto row = TRY(select.step());
    if (!row) return problems;
    problems.push_back({.message = {.id = select.integer(0),
                                    .key = std::string(select.text(1)),
                                    .topic = std::string(select.text(2)),
                                    .payload = {},
                                    .idempotency_key = std::string(select.text(3)),
                                    .attempts = select.integer(4)},
                        .last_error = std::string(select.text(5)),
                        .behind = select.integer(6)});
  }
}

class SqliteOutbox final : public Outbox {
 public:
  explicit SqliteOutbox(UserFile file) : file_(std::move(file)) {}

  Status install() override { return named(sqlite::install(connection())); }

  Status enter(const Token& token) override {
    TRY(named(check_part(connection(), kPart)));
    return fenced(token, [](Connection) { return Status(); });
  }

  Result<std::vector<OutboxMessage>> next(int limit, const std::vector<std::string>& except,
                                          std::int64_t after) override {
    return named(read_next(limit, except, after));
  }
  Result<std::optional<OutboxMessage>> find(std::int64_t id) override {
    return named(read_one(id));
  }

  Status delivered(const Token& token, std::int64_t id) override {
    return fenced(token, [id](Connection inside) { return mark_delivered(inside, id); });
  }

  Result<bool> failed(const Token& token, std::int64_t id, const std::string& why,
                      int attempts) override {
    return fenced(token, [&](Connection inside) { return mark_failed(inside, id, why, attempts); });
  }

  Result<std::int64_t> forget(const Token& token, Millis age) override {
    return fenced(token, [&](Connection inside) -> Result<std::int64_t> {
      auto erase = TRY(
          inside.prepare(std::string("DELETE FROM main.leasehold_outbox WHERE id IN (SELECT id FROM"
                                     " main.leasehold_outbox WHERE done_at < ") +
                         kNow + " - ?1 LIMIT 2000)"));
      TRY(erase.bind(1, age.count()).run());
      return inside.changes();
    });
  }

  Result<OutboxStatus> status() override { return named(read_status()); }

  Status retry(std::int64_t id) override {
    return named(resolve(id, "attempts = 0, set_aside = 0"));
  }
  Status skip(std::int64_t id) override {
    return named(resolve(id, std::string("skipped = 1, set_aside = 0, done_at = ") + kNow));
  }

 private:
  Connection connection() const { return file_.connection(); }
  template <class T>
  Result<T> named(Result<T> result) const {
    return file_.named(std::move(result));
  }

  // work(Connection) in a transaction that has entered the outbox's fence.
  template <class Work>
  auto fenced(const Token& token, Work work) const -> decltype(work(connection())) {
    auto fence = TRY(named(Fence::open(file_.handle(), kOutboxResource)));
    return named(fence.transaction(
        token, [&](OpenTransaction& open) { return work(Connection(open.handle())); }));
  }

  Result<std::vector<OutboxMessage>> read_next(int limit, const std::vector<std::string>& except,
                                               std::int64_t after) const;
  Result<std::optional<OutboxMessage>> read_one(std::int64_t id) const;
  Result<OutboxStatus> read_status() const;
  Status resolve(std::int64_t id, const std::string& change) const;

  UserFile file_;
};

// What waits and may be delivered, as message_of() reads it.
std::string select_waiting() {
  return std::string(
             "SELECT id, key, topic, payload, idempotency_key, attempts"
             " FROM main.leasehold_outbox o WHERE done_at IS NULL AND ") +
         kKeyGoesOn;
}

OutboxMessage message_of(const Statement& row) {
  return {.id = row.integer(0),
          .key = std::string(row.text(1)),
          .topic = std::string(row.text(2)),
          .payload = bytes_of(row, 3),
          .idempotency_key = std::string(row.text(4)),
          .attempts = row.integer(5)};
}

// The keys are compared here: they may be more than a statement has parameters.
Result<std::vector<OutboxMessage>> SqliteOutbox::read_next(int limit,
                                                           const std::vector<std::string>& except,
                                                           std::int64_t after) const {
  const std::set<std::string_view> left_out(except.begin(), except.end());
  auto select = TRY(connection().prepare(
      select_waiting() +
      " AND id > ?1 AND (SELECT min(b.id) FROM main.leasehold_outbox b WHERE b.key = o.key"
      " AND b.done_at IS NULL) > ?1 ORDER BY id"));
  select.bind(1, after);
  std::vector<OutboxMessage> messages;
  while (messages.size() < static_cast<std::size_t>(limit)) {
    auto row = TRY(select.step());
    if (!row) break;
    if (!left_out.contains(select.text(1))) messages.push_back(message_of(select));
  }
  return messages;
}

Result<std::optional<OutboxMessage>> SqliteOutbox::read_one(std::int64_t id) const {
  auto select = TRY(connection().prepare(select_waiting() + " AND id = ?1"));
  auto row = TRY(select.bind(1, id).step());
  if (!row) return std::nullopt;
  return message_of(select);
}

Result<OutboxStatus> SqliteOutbox::read_status() const {
  TRY(check_part(connection(), kPart));
  auto counts = TRY(connection().prepare(
      std::string("SELECT count(*) FILTER (WHERE done_at IS NULL),"
                  " count(*) FILTER (WHERE done_at IS NOT NULL AND skipped = 0),"
                  " count(*) FILTER (WHERE skipped = 1), coalesce(") +
      kNow + " - min(put_at) FILTER (WHERE done_at IS NULL AND " + kKeyGoesOn +
      "), 0) FROM main.leasehold_outbox o"));
  TRY(counts.step());
  OutboxStatus status{.waiting = counts.integer(0),
                      .delivered = counts.integer(1),
                      .skipped = counts.integer(2),
                      .lag = Millis(counts.integer(3)),
                      .set_aside = {}};
  auto problems = TRY(read_problems(connection()));
  status.set_aside = std::move(problems);
  return status;
}

Status SqliteOutbox::resolve(std::int64_t id, const std::string& change) const {
  TRY(check_part(connection(), kPart));
  auto update = TRY(connection().prepare("UPDATE main.leasehold_outbox SET " + change +
                                         " WHERE id = ?1 AND set_aside = 1 AND done_at IS NULL"));
  TRY(update.bind(1, id).run());
  if (connection().changes() == 1) return {};
  return not_one(id, "is not set aside; see `leasehold outbox show URL`");
}

Result<Statement> prepare_put(Connection connection, const OutboxEntry& entry) {
  auto insert = connection.prepare(
      entry.idempotency_key
          ? "INSERT INTO main.leasehold_outbox(key, topic, payload, idempotency_key)"
            " VALUES(?1, ?2, ?3, ?4)"
          : "INSERT INTO main.leasehold_outbox(key, topic, payload) VALUES(?1, ?2, ?3)");
  if (!insert) return insert;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(entry.payload.data());
  insert->bind(1, std::string_view(entry.key)).bind(2, std::string_view(entry.topic));
  insert->bind(3, std::span<const std::uint8_t>(bytes, entry.payload.size()));
  if (entry.idempotency_key) insert->bind(4, std::string_view(*entry.idempotency_key));
  return insert;
}

}  // namespace

const Part& outbox_part() {
  return kPart;
}

Status install_outbox(sqlite3* db) {
  return install(Connection(db));
}

Result<std::int64_t> outbox_put(sqlite3* db, const OutboxEntry& entry) {
  const Connection connection(db);
  TRY(check(entry));
  if (!connection.in_transaction()) {
    return fail(ErrorCode::invalid,
                "no transaction is open: the message and the work must be one transaction");
  }
  auto insert = prepare_put(connection, entry);
  if (!insert) {
    auto there = check_part(connection, kPart);
    return fail(there ? std::move(insert.error()) : std::move(there.error()));
  }
  if (auto ok = insert->run(); !ok) {
    const bool repeated = (sqlite3_extended_errcode(db) == SQLITE_CONSTRAINT_UNIQUE);
    if (!repeated) return fail(std::move(ok.error()));
    return fail(
        ErrorCode::invalid,
        "the idempotency key '" + entry.idempotency_key.value_or("") + "' is in the outbox already",
        ok.error().store_words);
  }
  return sqlite3_last_insert_rowid(db);
}

Result<std::unique_ptr<Outbox>> open_outbox(const Url& url) {
  auto file = TRY(UserFile::open(url, "the outbox"));
  return std::make_unique<SqliteOutbox>(std::move(file));
}

}  // namespace leasehold::sqlite
