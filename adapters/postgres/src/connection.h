// One connection to PostgreSQL, used without blocking longer than a call may take.
#pragma once

#include <libpq-fe.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/id.h"
#include "options.h"
#include "waiting/call_wait.h"

namespace leasehold::postgres {

// libpq's words without its line breaks and tabs.
std::string one_line(std::string_view text);
// What the server said, on one line: without the statement or function that it said it of, which
// can be as long as a whole installation.
std::string words_of(const PGresult* result);
// Only the detail and the hint, beside a message that has the rest.
std::string words_besides_primary(const PGresult* result);

// The rows of one answer.
class Rows {
 public:
  explicit Rows(PGresult* result) : result_(result) {}

  int count() const { return PQntuples(result_.get()); }
  int columns() const { return PQnfields(result_.get()); }
  // How many rows the statement wrote.
  std::int64_t changed() const;
  bool is_null(int column, int row = 0) const {
    return PQgetisnull(result_.get(), row, column) != 0;
  }
  std::string_view text(int column, int row = 0) const {
    return {PQgetvalue(result_.get(), row, column),
            static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
  }
  bool flag(int column, int row = 0) const { return text(column, row) == "t"; }
  std::int64_t number(int column, int row = 0) const;
  // From a uuid; nothing if it is NULL.
  template <class Id>
  std::optional<Id> id(int column, int row = 0) const {
    return Id::from_hex(without_dashes(text(column, row)));
  }

 private:
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  static std::string without_dashes(std::string_view uuid);

  std::unique_ptr<PGresult, Clear> result_;
};

// SQL with parameters, which a connection may have prepared under this name; "": never.
struct Statement {
  const char* name;
  std::string sql;
};

// Text, or null.
using Parameters = std::initializer_list<const char*>;

// Used by one thread at a time. A failure says what is known:
// - `unavailable`: the server said that it did not do it, or it was never asked.
// - `outcome_unknown`: the connection failed or the time ran out after it was asked.
// After a failure other than the server's own "no", broken() is true, and the connection useless;
// but if only the time ran out, the answer can still be had by receive().
class Connection {
 public:
  // Connects to the first of the hosts that can be written to. `unavailable` with the reason of
  // each host, or `cancelled`.
  [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const std::vector<Host>& hosts,
                                                                const CallContext& context,
                                                                const waiting::Alarm& closing);

  // The last rows that the SQL gives. Several statements without parameters are one transaction,
  // and find only names of pg_catalog and such as are written in full.
  [[nodiscard]] Result<Rows> run(const std::string& sql, waiting::CallWait& wait);
  // With parameters the search_path is the session's: behind a pooler the role's. Every operator
  // and function has to be written in full.
  [[nodiscard]] Result<Rows> run(const std::string& sql, Parameters parameters,
                                 waiting::CallWait& wait);
  // As prepared, if prepare() was called.
  [[nodiscard]] Result<Rows> run(const Statement& statement, Parameters parameters,
                                 waiting::CallWait& wait);

  // Runs `sql` and prepares the statements, all in one round trip; the rows of `sql`.
  [[nodiscard]] Result<Rows> prepare(const std::string& sql,
                                     const std::vector<const Statement*>& statements,
                                     waiting::CallWait& wait);

  // The two halves of run(): sends, and does not wait for the answer.
  [[nodiscard]] Status send(const std::string& sql, Parameters parameters, waiting::CallWait& wait);
  [[nodiscard]] Status send(const Statement& statement, Parameters parameters,
                            waiting::CallWait& wait);
  [[nodiscard]] Result<Rows> receive(waiting::CallWait& wait);
  // True when receive() would not wait, or the connection is lost. Does not block.
  bool has_answer();

  // The next notification that has arrived: its payload.
  std::optional<std::string> next_notification();

  // Whether nothing has gone wrong with an idle connection so far. Does not block.
  bool healthy();
  bool broken() const { return broken_ || owes_answer_; }
  bool owes_answer() const { return owes_answer_ && !broken_; }
  void give_up() { broken_ = true; }
  int fd() const { return PQsocket(connection_.get()); }
  // For synchronous use, in which no deadline but the server's own timeouts holds.
  PGconn* handle() const { return connection_.get(); }
  int server_version() const { return PQserverVersion(connection_.get()); }
  // What the server said its process is; a pooler in between says something else.
  int announced_pid() const { return PQbackendPID(connection_.get()); }

 private:
  struct Finish {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  using Handle = std::unique_ptr<PGconn, Finish>;

  explicit Connection(Handle connection);
  static Result<std::unique_ptr<Connection>> open_one(const Host& host, waiting::CallWait& wait);
  Result<Rows> refused(PGresult* result);
  Status flush(waiting::CallWait& wait);
  Status sent(int ok, waiting::CallWait& wait);
  Status await_input(waiting::CallWait& wait);
  Result<Rows> next_result(waiting::CallWait& wait);
  Error lost();
  void noticed(const PGresult* notice);

  Handle connection_;
  bool prepared_ = false;
  bool broken_ = false;
  bool owes_answer_ = false;
  std::string warning_;  // since the last request
};

}  // namespace leasehold::postgres
