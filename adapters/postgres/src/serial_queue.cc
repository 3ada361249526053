#include "leasehold/postgres/serial_queue.h"

#include <algorithm>

#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "leasehold/id.h"
#include "part.h"
#include "serial_schema.h"
#include "session.h"

namespace leasehold::postgres {
namespace {

constexpr Part kSerial = {"leasehold_serial",
                          kSerialVersion,
                          kSerialSchema,
                          "the serial queue",
                          "with `leasehold serial install` or SerialQueue::install()",
                          "all operations that wait"};

// An entity's first operation, unless a worker has it, it pauses, or it is set aside. One that
// another worker has just finished is gone when its lock is had; then this one finds nothing, and
// looks again.
//
// Among the oldest operations first: as a rule it is there, however many entities there are.
constexpr const char* kTakeNear = R"sql(
SELECT o.id, o.entity, o.payload, o.attempts, pg_catalog.pg_current_xact_id()
FROM leasehold_serial.operation o
WHERE o.queue OPERATOR(pg_catalog.=) $1 AND NOT o.set_aside
  AND o.due OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp()
  AND o.id OPERATOR(pg_catalog.<=) (
    SELECT pg_catalog.max(id) FROM (SELECT id FROM leasehold_serial.operation
                                    WHERE queue OPERATOR(pg_catalog.=) $1
                                    ORDER BY id LIMIT 100) oldest)
  AND NOT EXISTS (SELECT 1 FROM leasehold_serial.operation b
                  WHERE b.queue OPERATOR(pg_catalog.=) o.queue
                    AND b.entity OPERATOR(pg_catalog.=) o.entity
                    AND b.id OPERATOR(pg_catalog.<) o.id)
ORDER BY o.id LIMIT 1 FOR UPDATE OF o SKIP LOCKED
)sql";

// Else from entity to entity in their index, so that an entity that has to wait costs one step,
// however many operations it has.
constexpr const char* kTakeAny = R"sql(
SELECT o.id, o.entity, o.payload, o.attempts, pg_catalog.pg_current_xact_id()
FROM leasehold_serial.operation o
WHERE NOT o.set_aside AND o.due OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp()
  AND o.id OPERATOR(pg_catalog.=) ANY (ARRAY(
  WITH RECURSIVE head(entity, id) AS (
    (SELECT entity, id FROM leasehold_serial.operation WHERE queue OPERATOR(pg_catalog.=) $1
     ORDER BY entity, id LIMIT 1)
    UNION ALL
    SELECT n.entity, n.id FROM head h CROSS JOIN LATERAL (
      SELECT entity, id FROM leasehold_serial.operation
      WHERE queue OPERATOR(pg_catalog.=) $1 AND entity OPERATOR(pg_catalog.>) h.entity
      ORDER BY entity, id LIMIT 1) n)
  SELECT id FROM head))
ORDER BY o.id LIMIT 1 FOR UPDATE OF o SKIP LOCKED
)sql";

bool is_alive(const PGconn* connection) {
  return PQstatus(connection) == CONNECTION_OK;
}

bool is_over(const PGconn* connection) {
  return PQtransactionStatus(connection) == PQTRANS_IDLE;
}

// The work may make savepoints too: one of the same name would hide what it wrote before it.
std::string unguessable_savepoint() {
  return "leasehold_serial_" + RequestId::random(system_random()).hex();
}

// Of the work nothing was committed: it is not in doubt, whatever became of the count.
Error uncounted(Error error, const Error& of_work) {
  if (error.code == ErrorCode::outcome_unknown) error.code = ErrorCode::unavailable;
  error.message =
      "the operation was not done, and its failure may not have been counted: " + error.message +
      "; the work had ended with " + to_string(of_work);
  return error;
}

Result<Operation> operation_of(const Rows& rows, int row) {
  auto entity = EntityName::parse(rows.text(1, row));
  if (!entity) {
    return fail(ErrorCode::unavailable, "operation " + std::string(rows.text(0, row)) +
                                            " is damaged: " + entity.error().message);
  }
  return Operation{rows.number(0, row), std::move(*entity), std::string(rows.text(2, row)),
                   rows.number(3, row)};
}

// In a transaction that it begins.
Result<Rows> take_first(const Session& session, const QueueName& queue,
                        const SerialHandleOptions& options) {
  auto begun = session.run("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", {});
  if (!begun) return begun;
  const std::string limit = as_setting(options.idle_timeout);
  auto limited = session.run(
      "SELECT pg_catalog.set_config('idle_in_transaction_session_timeout', $1::bigint::text, true)"
      " WHERE $1::bigint OPERATOR(pg_catalog.>) 0",
      {limit.c_str()});
  if (!limited) return limited;
  auto rows = session.run(kTakeNear, {queue.str().c_str()});
  if (!rows || rows->count() > 0) return rows;
  return session.run(kTakeAny, {queue.str().c_str()});
}

}  // namespace

Status SerialQueue::install(pg_conn* connection) {
  return install_part(Session(connection), kSerial);
}

Result<SerialQueue> SerialQueue::open(pg_conn* connection, std::string_view queue) {
  auto name = TRY(QueueName::parse(queue));
  TRY(check_part(Session(connection), kSerial));
  return SerialQueue(connection, std::move(name));
}

Result<std::int64_t> SerialQueue::push(std::string_view entity, std::string_view payload) const {
  const Session session(connection_);
  const auto name = TRY(EntityName::parse(entity));
  TRY(check_operation_payload(payload));
  if (payload.find('\0') != std::string_view::npos) {
    return fail(ErrorCode::invalid, "operation payload has a zero byte, which no text can hold");
  }
  const std::string text(payload);
  const auto rows = TRY(session.run("SELECT leasehold_serial.push($1, $2, $3)",
                                    {queue_.str().c_str(), name.str().c_str(), text.c_str()}));
  return rows.number(0);
}

Result<std::optional<SerialQueue::Taken>> SerialQueue::take(
    const SerialHandleOptions& options) const {
  const Session session(connection_);
  TRY(session.check_outside());
  auto rows = take_first(session, queue_, options);
  if (!rows || rows->count() == 0) session.roll_back();
  if (!rows) return fail(std::move(rows.error()));
  if (rows->count() == 0) return std::nullopt;
  OwnedTransaction transaction(connection_, TransactionId{rows->number(4)});
  auto operation = TRY(operation_of(*rows, 0));
  std::string savepoint = unguessable_savepoint();
  TRY(session.run("SAVEPOINT " + savepoint, {}));
  return Taken{std::move(transaction), std::move(operation), std::move(savepoint)};
}

Result<Handled> SerialQueue::finish(Taken taken, Status done, const HandleOptions& options) const {
  const bool worked = done.has_value();
  if (worked) done = remove(taken.operation);
  if (done) done = taken.transaction.commit();
  if (done) return Handled{Handled::What::done, std::move(taken.operation), std::nullopt};

  Error error = std::move(done.error());
  if (worked && (!is_alive(connection_) || error.code == ErrorCode::outcome_unknown)) {
    return fail(std::move(error));
  }
  auto set_aside = count_and_commit(taken, error, options);
  if (!set_aside) return fail(uncounted(std::move(set_aside.error()), error));
  return Handled{*set_aside ? Handled::What::set_aside : Handled::What::failed,
                 std::move(taken.operation), std::move(error)};
}

Status SerialQueue::remove(const Operation& operation) const {
  const Session session(connection_);
  // A work that ended the transaction has let go of the entity.
  TRY(session.check_after_work());
  TRY(session.check());
  const std::string id = std::to_string(operation.id);
  const auto rows =
      TRY(session.run("DELETE FROM leasehold_serial.operation WHERE id OPERATOR(pg_catalog.=) $1"
                      " RETURNING leasehold_serial.commit_durably()",
                      {id.c_str()}));
  if (rows.count() == 1) return {};
  return fail(ErrorCode::invalid, "operation " + id + " was removed while it was done");
}

// In the transaction that has the operation, so that no other worker takes it before its pause. If
// that transaction is gone (a failed commit ends it, as may the work), in one of its own.
Result<bool> SerialQueue::count_and_commit(Taken& taken, const Error& error,
                                           const HandleOptions& options) const {
  const Session session(connection_);
  session.leave_pipeline();
  if (!is_over(connection_)) {
    const auto undone = session.run("ROLLBACK TO SAVEPOINT " + taken.savepoint, {});
    Result<bool> set_aside =
        undone ? count_failure(taken.operation, error, options) : fail(undone.error());
    if (set_aside) {
      if (auto ok = taken.transaction.commit(); !ok) set_aside = fail(std::move(ok.error()));
    }
    if (set_aside || !is_alive(connection_) ||
        set_aside.error().code == ErrorCode::outcome_unknown) {
      return set_aside;
    }
    session.roll_back();
  }
  return count_failure(taken.operation, error, options);
}

Result<bool> SerialQueue::count_failure(const Operation& operation, const Error& error,
                                        const HandleOptions& options) const {
  const std::string id = std::to_string(operation.id);
  const std::string most = std::to_string(options.attempts);
  const std::string pause = bounded(pause_after(operation.attempts, options));
  const std::string why = kit::storable(to_string(error));
  const auto rows =
      TRY(Session(connection_)
              .run("UPDATE leasehold_serial.operation"
                   " SET attempts = attempts OPERATOR(pg_catalog.+) 1, last_error = $2,"
                   " set_aside = (attempts OPERATOR(pg_catalog.+) 1) OPERATOR(pg_catalog.>=) $3,"
                   " due = pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+)"
                   " ($4::double precision OPERATOR(pg_catalog.*) interval '1 millisecond')"
                   " WHERE id OPERATOR(pg_catalog.=) $1 RETURNING set_aside, "
                   "leasehold_serial.commit_durably()",
                   {id.c_str(), why.c_str(), most.c_str(), pause.c_str()}));
  return rows.count() == 1 && rows.flag(0);
}

Result<std::int64_t> SerialQueue::waiting() const {
  const auto rows = TRY(Session(connection_)
                            .run("SELECT pg_catalog.count(*) FROM leasehold_serial.operation"
                                 " WHERE queue OPERATOR(pg_catalog.=) $1",
                                 {queue_.str().c_str()}));
  return rows.number(0);
}

Result<std::vector<SerialProblem>> SerialQueue::set_aside() const {
  const auto rows = TRY(
      Session(connection_)
          .run("SELECT id, entity, payload, attempts, last_error FROM leasehold_serial.operation"
               " WHERE queue OPERATOR(pg_catalog.=) $1 AND set_aside ORDER BY id",
               {queue_.str().c_str()}));
  std::vector<SerialProblem> problems;
  for (int row = 0; row < rows.count(); ++row) {
    auto operation = TRY(operation_of(rows, row));
    problems.push_back({std::move(operation), std::string(rows.text(4, row))});
  }
  return problems;
}

Status SerialQueue::resolve(std::int64_t id, const char* sql) const {
  const std::string number = std::to_string(id);
  const auto rows =
      TRY(Session(connection_)
              .run(std::string(sql) + " WHERE queue OPERATOR(pg_catalog.=) $1"
                                      " AND id OPERATOR(pg_catalog.=) $2 AND set_aside"
                                      " RETURNING leasehold_serial.commit_durably()",
                   {queue_.str().c_str(), number.c_str()}));
  if (rows.count() == 1) return {};
  return fail(ErrorCode::invalid, "operation " + number + " is not set aside");
}

Status SerialQueue::retry(std::int64_t id) const {
  return resolve(id,
                 "UPDATE leasehold_serial.operation SET set_aside = false, attempts = 0,"
                 " due = '-infinity'");
}

Status SerialQueue::skip(std::int64_t id) const {
  return resolve(id, "DELETE FROM leasehold_serial.operation");
}

}  // namespace leasehold::postgres
