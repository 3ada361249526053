#include "outbox.h"

#include <span>
#include <string>
#include <utility>

#include "fence_table.h"
#include "kit/try.h"
#include "leasehold/sqlite/fence.h"
#include "leasehold/sqlite/outbox.h"
#include "name_sql.h"
#include "schema.h"
#include "sql/outbox.h"
#include "user_file.h"

namespace leasehold::sqlite {
namespace {

constexpr Part kPart{"outbox", 1, "install it with `leasehold outbox install` or install_outbox()",
                     "DROP TABLE leasehold_outbox; DELETE FROM leasehold_version WHERE part = "
                     "'outbox'; and install it; it forgets all messages"};

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

// Also for a table that was made without it: then a search is slow, and no less right.
constexpr const char* kIndexByKey =
    "CREATE INDEX IF NOT EXISTS main.leasehold_outbox_by_key ON leasehold_outbox(key, id)"
    " WHERE done_at IS NULL";

Status install(Connection connection) {
  TRY(make_fence(connection));
  return connection.durably([&] {
    auto installed = install_part(connection, kPart, table());
    return installed ? connection.exec(kIndexByKey) : installed;
  });
}

class SqliteOutbox final : public sql::SqlOutbox {
 public:
  explicit SqliteOutbox(UserFile file) : SqlOutbox(form()), file_(std::move(file)) {}

  Status install() override { return file_.named(sqlite::install(file_.connection())); }

 private:
  static sql::OutboxForm form() {
    return {.table = "main.leasehold_outbox",
            .sign = '?',
            .now = kNow,
            .since = std::string(kNow) + " - %",
            .ago = std::string(kNow) + " - %",
            .is_set_aside = "%.set_aside = 1",
            .elements = "SELECT value FROM json_each(%)",
            .list = "[]"};
  }

  Status check() override { return check_part(file_.connection(), kPart); }
  Result<sql::Rows> run(const std::string& sql, const sql::Parameters& parameters,
                        sql::Purpose purpose) override {
    const auto run = [&] { return file_.connection().run(sql, parameters); };
    return purpose.writes ? file_.connection().durably(run) : run();
  }
  Status fenced(const Token& token, const std::function<Status()>& work) override {
    auto fence = TRY(Fence::open(file_.handle(), kOutboxResource));
    return fence.transaction(token, [&](OpenTransaction&) { return work(); });
  }
  Error named(Error error) const override {
    return file_.named(Status(fail(std::move(error)))).error();
  }

  UserFile file_;
};

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
