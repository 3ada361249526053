// SQLite's C interface as RAII values and Results. The only place that maps its error codes.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "leasehold/error.h"
#include "leasehold/id.h"
#include "leasehold/sql/statement.h"

namespace leasehold::sqlite {

// The error that `db` reports now. `what` begins the sentence: "cannot read /x/locks.db".
Error last_error(sqlite3* db, std::string what);

// One prepared statement. Bind from index 1, read columns from 0. Text and blobs that are bound
// must outlive the next reset().
class Statement {
 public:
  Statement() = default;

  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, std::string_view text);
  Statement& bind(int index, std::span<const std::uint8_t> blob);
  Statement& bind_null(int index);

  // Binds these, runs to the end and gives all rows. A blob is given as its bytes.
  [[nodiscard]] Result<sql::Rows> rows(const sql::Parameters& parameters);
  // true: a row is there to read. false: done.
  [[nodiscard]] Result<bool> step();
  // Runs to the end, ignoring rows, and resets.
  [[nodiscard]] Status run();
  void reset();

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  std::string_view text(int column) const;  // valid until the next step or reset
  std::span<const std::uint8_t> blob(int column) const;

  template <class Id>
  std::optional<Id> id(int column) const {
    return Id::from_bytes(blob(column));
  }

 private:
  friend class Connection;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// Resets a cached statement when the scope ends, so that it never pins a snapshot.
class Use {
 public:
  explicit Use(Statement& statement) : statement_(statement) {}
  ~Use() { statement_.reset(); }
  Use(const Use&) = delete;
  Statement* operator->() const { return &statement_; }
  Statement& operator*() const { return statement_; }

 private:
  Statement& statement_;
};

// A connection that somebody else owns.
class Connection {
 public:
  explicit Connection(sqlite3* db) : db_(db) {}

  [[nodiscard]] Result<Statement> prepare(std::string_view sql) const;
  // One statement, as Statement::rows.
  [[nodiscard]] Result<sql::Rows> run(std::string_view sql,
                                      const sql::Parameters& parameters) const;
  // One or more statements without parameters.
  [[nodiscard]] Status exec(const char* sql) const;
  std::int64_t changes() const { return sqlite3_changes64(db_); }
  bool in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }
  sqlite3* handle() const { return db_; }

  // What was just read may be of a process that died inside the sync of its commit. This makes it
  // as durable as the connection's own commits are, and does nothing if those are not synced
  // either.
  [[nodiscard]] Status sync_what_was_read() const;
  // Does `work`, which succeeds also where it finds its work done. If nothing was left to write,
  // what it found is synced as above; in a transaction of the caller that is for his commit.
  template <class Work>
  auto durably(Work work) const -> decltype(work()) {
    const int before = pages_written();
    auto done = work();
    if (!done || in_transaction() || pages_written() != before) return done;
    if (auto ok = sync_what_was_read(); !ok) return fail(std::move(ok.error()));
    return done;
  }
  // Of a database that has one and has used it; nothing else is done.
  [[nodiscard]] Status sync_log() const;

 private:
  int pages_written() const;

  sqlite3* db_;
};

// BEGIN IMMEDIATE … COMMIT; rolls back unless committed.
class [[nodiscard]] Transaction {
 public:
  [[nodiscard]] static Result<Transaction> begin(Connection connection);
  // With a plain BEGIN: takes no lock before it is used.
  [[nodiscard]] static Result<Transaction> begin_reading(Connection connection);
  // The same with "BEGIN IMMEDIATE" and "COMMIT" prepared by the caller; they outlive it.
  [[nodiscard]] static Result<Transaction> begin(Connection connection, Statement& begin,
                                                 Statement& commit);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  // `outcome_unknown` if the disk failed while the commit was written.
  [[nodiscard]] Status commit();

 private:
  explicit Transaction(Connection connection, Statement* commit = nullptr)
      : connection_(connection), commit_(commit) {}
  Connection connection_;
  Statement* commit_;
  bool open_ = true;
};

// For statements at tables of the user's. What the database refuses there, if the statement is
// right otherwise, is the caller's value, and so `invalid`.
sql::Run run_for_user(Connection connection);

// A connection of our own.
class Database {
 public:
  // Opens for reading and writing; creates the file if `create`. `unavailable` with a sentence that
  // names the path, for a folder that is not there, a file that is not a database, …
  [[nodiscard]] static Result<Database> open(const std::string& path, bool create,
                                             const char* vfs = nullptr);
  Connection connection() const { return Connection(db_.get()); }
  sqlite3* handle() const { return db_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  explicit Database(sqlite3* db) : db_(db) {}
  std::unique_ptr<sqlite3, Close> db_;
};

}  // namespace leasehold::sqlite
