#include "database.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "kit/try.h"

namespace leasehold::sqlite {
namespace {

std::string_view explain(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another process is writing and did not finish in time";
    case SQLITE_FULL:
      return "the disk is full";
    case SQLITE_READONLY:
      return "the file or its folder is read-only";
    case SQLITE_CANTOPEN:
      return "the file cannot be opened";
    case SQLITE_CORRUPT:
      return "the file is damaged";
    case SQLITE_NOTADB:
      return "the file is not a SQLite database";
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return "permission is denied";
    case SQLITE_IOERR:
      return "the disk reported an error";
    case SQLITE_INTERRUPT:
      return "the call was stopped";
    default:
      return "SQLite reported an error";
  }
}

// SQLite does not say why.
std::string_view why_not_open(const std::string& path) {
  struct stat there {};
  if (stat(path.c_str(), &there) == 0) {
    return S_ISDIR(there.st_mode) ? "it is a folder" : "the file cannot be opened";
  }
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (stat(folder.c_str(), &there) != 0) return "its folder is not there";
  return access(folder.c_str(), W_OK) == 0 ? "there is no such file"
                                           : "its folder cannot be written";
}

Error cannot_open(sqlite3* db, const std::string& path) {
  Error error = last_error(db, "cannot open " + path);
  if ((sqlite3_errcode(db) & 0xff) == SQLITE_CANTOPEN) {
    error.message = "cannot open " + path + ": " + std::string(why_not_open(path));
  }
  return error;
}

ErrorCode code_of(int code) {
  switch (code & 0xff) {
    case SQLITE_MISUSE:
    case SQLITE_ERROR:
    case SQLITE_RANGE:
      return ErrorCode::internal;
    case SQLITE_INTERRUPT:
      return ErrorCode::cancelled;
    default:
      return ErrorCode::unavailable;
  }
}

Error write_error(Connection connection, Error error) {
  const int code = sqlite3_extended_errcode(connection.handle()) & 0xff;
  if (code != SQLITE_CONSTRAINT && code != SQLITE_ERROR && code != SQLITE_MISMATCH) return error;
  error.code = ErrorCode::invalid;
  error.message = "the row was not written";
  return error;
}

}  // namespace

Error last_error(sqlite3* db, std::string what) {
  const int code = sqlite3_extended_errcode(db);
  what += ": ";
  what += explain(code);
  return Error(code_of(code), std::move(what), sqlite3_errmsg(db));
}

Statement& Statement::bind(int index, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), index, value);
  return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), index, text.data(), text.size(), SQLITE_STATIC,
                      SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind(int index, std::span<const std::uint8_t> blob) {
  sqlite3_bind_blob64(statement_.get(), index, blob.data(), blob.size(), SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind_null(int index) {
  sqlite3_bind_null(statement_.get(), index);
  return *this;
}

Result<sql::Rows> Statement::rows(const sql::Parameters& parameters) {
  int index = 0;
  for (const sql::Parameter& parameter : parameters) {
    ++index;
    if (const auto* number = std::get_if<std::int64_t>(&parameter)) {
      bind(index, *number);
    } else if (const auto* text = std::get<const std::string*>(parameter)) {
      bind(index, std::string_view(*text));
    } else {
      bind_null(index);
    }
  }
  const int columns = sqlite3_column_count(statement_.get());
  std::vector<sql::Value> values;
  // Only the end of the statement commits it.
  while (TRY(step())) {
    for (int column = 0; column < columns; ++column) {
      sql::Value& value = values.emplace_back();
      if (is_null(column)) continue;
      if (sqlite3_column_type(statement_.get(), column) == SQLITE_BLOB) {
        const auto bytes = blob(column);
        value.emplace(bytes.begin(), bytes.end());
      } else {
        value.emplace(text(column));
      }
    }
  }
  return sql::Rows(columns, std::move(values));
}

Result<bool> Statement::step() {
  switch (sqlite3_step(statement_.get())) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      return fail(last_error(sqlite3_db_handle(statement_.get()), "the database did not answer"));
  }
}

Status Statement::run() {
  for (;;) {
    auto row = step();
    if (!row || !*row) {
      reset();
      if (!row) return fail(std::move(row.error()));
      return {};
    }
  }
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string_view Statement::text(int column) const {
  const auto* data = sqlite3_column_text(statement_.get(), column);
  if (data == nullptr) return {};
  return {reinterpret_cast<const char*>(data),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::span<const std::uint8_t> Statement::blob(int column) const {
  const auto* data =
      static_cast<const std::uint8_t*>(sqlite3_column_blob(statement_.get(), column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

Result<Statement> Connection::prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                         &statement, nullptr) != SQLITE_OK) {
    return fail(last_error(db_, "the database does not accept a statement"));
  }
  return Statement(statement);
}

Result<sql::Rows> Connection::run(std::string_view sql, const sql::Parameters& parameters) const {
  auto statement = TRY(prepare(sql));
  return statement.rows(parameters);
}

// Maps an error while the statement lives: finalizing it would be SQLite's latest call.
sql::Run run_for_user(Connection connection) {
  return [connection](const std::string& sql, const sql::Parameters& parameters,
                      sql::Purpose purpose) -> Result<sql::Rows> {
    const auto run = [&]() -> Result<sql::Rows> {
      auto statement = connection.prepare(sql);
      if (!statement) return fail(write_error(connection, std::move(statement.error())));
      auto rows = statement->rows(parameters);
      if (!rows) return fail(write_error(connection, std::move(rows.error())));
      return rows;
    };
    return purpose.writes ? connection.durably(run) : run();
  };
}

Status Connection::exec(const char* sql) const {
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return fail(last_error(db_, "the database did not answer"));
  }
  return {};
}

Status Connection::sync_what_was_read() const {
  constexpr std::int64_t kFull = 2;
  auto level = TRY(prepare("PRAGMA main.synchronous"));
  auto row = TRY(level.step());
  if (!row || level.integer(0) < kFull) return {};
  return sync_log();
}

int Connection::pages_written() const {
  int written = 0;
  int unused = 0;
  sqlite3_db_status(db_, SQLITE_DBSTATUS_CACHE_WRITE, &written, &unused, 0);
  return written;
}

Status Connection::sync_log() const {
  sqlite3_file* log = nullptr;
  sqlite3_file_control(db_, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (log == nullptr || log->pMethods == nullptr) return {};
  if (log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) == SQLITE_OK) return {};
  return fail(ErrorCode::unavailable, "the disk failed to sync the log of the database");
}

Result<Transaction> Transaction::begin(Connection connection) {
  TRY(connection.exec("BEGIN IMMEDIATE"));
  return Transaction(connection);
}

Result<Transaction> Transaction::begin_reading(Connection connection) {
  TRY(connection.exec("BEGIN"));
  return Transaction(connection);
}

Result<Transaction> Transaction::begin(Connection connection, Statement& begin, Statement& commit) {
  TRY(begin.run());
  return Transaction(connection, &commit);
}

Transaction::Transaction(Transaction&& other) noexcept
    : connection_(other.connection_),
      commit_(other.commit_),
      open_(std::exchange(other.open_, false)) {}

Transaction::~Transaction() {
  if (open_ && connection_.in_transaction()) {
    sqlite3_exec(connection_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

Status Transaction::commit() {
  auto ok = commit_ != nullptr ? commit_->run() : connection_.exec("COMMIT");
  if (ok) {
    open_ = false;
    return {};
  }
  Error error = std::move(ok.error());
  // The commit record may have reached the file although writing or syncing it failed.
  if ((sqlite3_extended_errcode(connection_.handle()) & 0xff) == SQLITE_IOERR) {
    error.code = ErrorCode::outcome_unknown;
  }
  return fail(std::move(error));
}

Result<Database> Database::open(const std::string& path, bool create, const char* vfs) {
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, vfs);
  Database database(raw);
  if (code != SQLITE_OK) {
    if (raw == nullptr) return fail(ErrorCode::internal, "no memory for a SQLite connection");
    return fail(cannot_open(raw, path));
  }
  sqlite3_extended_result_codes(raw, 1);
  return database;
}

}  // namespace leasehold::sqlite
