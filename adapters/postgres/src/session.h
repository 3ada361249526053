// The user's own connection, used synchronously; what the server says as our errors.
#pragma once

#include <libpq-fe.h>

#include <string>
#include <vector>

#include "connection.h"
#include "connection_memory.h"
#include "leasehold/error.h"
#include "leasehold/sql/form.h"
#include "leasehold/time.h"

namespace leasehold::postgres {

// What a Session's failure says: a schema, table or function of ours is not there.
bool is_missing(const Error& error);
// The role has no right to it.
bool is_forbidden(const Error& error);
Error forbidden();
// Another transaction came in between; the same may succeed in a new transaction.
bool is_conflict(const Error& error);
// A lock was not to be had in the time that the session allows.
bool is_too_long(const Error& error);

// An expression: by this commit() knows the transaction again, as TransactionId. A macro, to be
// part of a literal.
#define LEASEHOLD_TRANSACTION_ID "pg_catalog.pg_current_xact_id()"

// An expression: makes the commit durable though the session has synchronous_commit off. For
// statements at tables of the user's own; a schema of ours has commit_durably().
inline constexpr const char* kDurably =
    "CASE WHEN pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.<>)"
    " ALL ('{on,remote_apply}'::pg_catalog.text[])"
    " THEN pg_catalog.set_config('synchronous_commit', 'on', true) END";

// For statements at tables of the user's own, in whose search_path others may have put operators.
inline constexpr sql::SqlForm kSqlForm = {'$', "OPERATOR(pg_catalog.", ")"};

// The number of milliseconds as the server can reckon with it: a century at most, either way.
std::string bounded(Millis span);
// The same for a setting of the server, which counts in 32 bits.
std::string as_setting(Millis span);

// Does not own the connection.
class Session {
 public:
  explicit Session(PGconn* connection) : connection_(connection) {}
  // Each transaction begins with these settings, instead of those of settings_of().
  Session(PGconn* connection, const char* settings)
      : connection_(connection), settings_(settings) {}

  // `invalid` if it cannot be used: none, in pipeline mode, or of another encoding. `unavailable`
  // if it is known to be lost.
  [[nodiscard]] Status check() const;

  // `invalid` unless a transaction is open that has not failed.
  [[nodiscard]] Status check_inside() const;
  // `invalid` if a transaction is open.
  [[nodiscard]] Status check_outside() const;

  // One statement. Fails with
  // - `fenced_out` and `invalid` as the fence's functions decide, `invalid` for wrong values too;
  // - `unavailable` if the server said no, with its words, or the connection was lost before;
  // - `outcome_unknown` if the connection was lost after it was asked, outside a transaction.
  [[nodiscard]] Result<Rows> run(const std::string& sql, Parameters parameters) const;
  [[nodiscard]] Result<Rows> run(const std::string& sql,
                                 const std::vector<const char*>& parameters) const;

  // The same in a transaction of its own in which each statement sees what others have committed by
  // then, whatever the session's default is: what is read after waiting for a lock must be new.
  [[nodiscard]] Result<Rows> run_read_committed(const std::string& sql,
                                                Parameters parameters = {}) const;

  // The same for a statement that is likely to come again. Outside a transaction it is prepared for
  // the next time, where it can be; inside it is not, because a preparation that was lost would end
  // the user's transaction.
  [[nodiscard]] Result<Rows> run_often(const std::string& sql,
                                       const std::vector<const char*>& parameters) const;

  // Begins a transaction and runs the statement in it, in one round trip; its rows. After a
  // failure the transaction is rolled back. Both are prepared for the next time, unless a
  // connection pooler is between: it may give each transaction another session.
  [[nodiscard]] Result<Rows> begin_with(const NamedStatement& statement,
                                        Parameters parameters) const;
  // `invalid`, and what is open is rolled back, if the transaction is not this one.
  [[nodiscard]] Status commit(TransactionId transaction) const;
  // When a work has returned: reads what it has sent without reading. `invalid` if its transaction
  // is over or has failed, or the connection is in pipeline mode; what is open is to be rolled
  // back.
  [[nodiscard]] Status check_after_work() const;
  // Ends pipeline mode, and reads what was sent there. False if that cannot be: the connection is
  // lost, also if a COPY was sent there.
  bool leave_pipeline() const;
  // In pipeline mode, that ends first.
  void roll_back() const;

 private:
  struct Sent {
    const NamedStatement* statement;
    enum class As { text, preparation, prepared } as;
  };
  const char* settings() const;  // or none
  Result<Rows> run_after(const char* first, const std::string& sql,
                         const std::vector<const char*>& parameters) const;
  bool send_text(const char* sql, const std::vector<const char*>& parameters,
                 std::vector<Sent>& sent) const;
  Result<Rows> try_to_begin(const NamedStatement& statement, Parameters parameters,
                            bool& lost_preparation) const;
  bool send_named(const NamedStatement& statement, Parameters parameters,
                  std::vector<Sent>& sent) const;
  Result<Rows> receive_all(const std::vector<Sent>& sent, bool inside,
                           bool& lost_preparation) const;
  // `gone`: all of it was sent. Ends the pipeline.
  Result<Rows> receive_pipeline(bool gone, const std::vector<Sent>& sent, bool inside,
                                bool& lost_preparation) const;
  const NamedStatement& beginning() const;
  bool may_commit() const;
  bool is_prepared(const NamedStatement& statement) const;
  Preparation preparation(const NamedStatement& statement) const;
  bool is_sessions_only_user() const;
  void read_what_was_sent() const;
  Status check_same(TransactionId transaction) const;
  Status commit_open() const;
  Result<Rows> answer(PGresult* result, bool inside) const;
  Error failure(const PGresult* result, bool inside) const;

  PGconn* connection_;
  const char* settings_ = nullptr;
};

}  // namespace leasehold::postgres
