#include "common_store.h"

#include <chrono>

#include "bytes.h"
#include "kit/try.h"
#include "schema.h"
#include "status_rows.h"

namespace leasehold::postgres {

CommonStore::CommonStore(Options options, Random& random, Functions functions,
                         std::size_t connections)
    : options_(std::move(options)),
      random_(random),
      pool_(connections, [this](const CallContext& context) { return connect(context); }),
      status_(statement("", std::string("SELECT * FROM @S.") + functions.status + "($1)")),
      force_release_(
          statement("", std::string("SELECT @S.") + functions.force_release + "($1, $2)")),
      record_(statement("", std::string("SELECT @S.") + functions.record +
                                "($1, $2, $3, pg_catalog.decode($4, 'hex'), "
                                "pg_catalog.decode($5, 'hex'))")) {}

Statement CommonStore::statement(const char* name, const std::string& sql) const {
  return {name, in_schema(sql, options_.schema)};
}

// ---- connecting ----------------------------------------------------------------------------

Status CommonStore::prepare(const CallContext& context) {
  auto ready = look_and_prepare(context);
  if (ready) return ready;
  Error error = std::move(ready.error());
  // Nobody has asked for a lock yet: what is unknown about the schema is found out next time.
  if (error.code == ErrorCode::outcome_unknown) error.code = ErrorCode::unavailable;
  error.message = "cannot use " + options_.address + ": " + error.message;
  return fail(std::move(error));
}

Status CommonStore::look_and_prepare(const CallContext& context) {
  auto connection = TRY(Connection::open(options_.hosts, context, closing_));
  waiting::CallWait wait(context, closing_);
  auto server = TRY(Server::look(*connection, options_, wait));
  server_ = std::move(server);
  TRY(suits(server_));
  return ensure_schema(*connection, {options_.schema, options_.schema_owner}, random_, wait);
}

// Behind a pooler the next transaction may be another session's: nothing can be prepared.
Result<std::unique_ptr<Connection>> CommonStore::connect(const CallContext& context) {
  auto connection = Connection::open(options_.hosts, context, closing_);
  if (!connection || server_.pooled) return connection;
  waiting::CallWait wait(context, closing_);
  auto ready = (*connection)->prepare(session_setup(), statements(), wait);
  if (ready && ready->number(0) == (*connection)->announced_pid()) return connection;
  if (ready) return fail(ErrorCode::unavailable, "there is a connection pooler now, and was none");
  // The operation itself has not begun.
  Error error = std::move(ready.error());
  if (error.code == ErrorCode::outcome_unknown) {
    error.code = context.stop.stop_requested() ? ErrorCode::cancelled : ErrorCode::unavailable;
  }
  return fail(std::move(error));
}

Result<CommonStore::Pool::Loan> CommonStore::healthy_connection(const CallContext& context,
                                                                Look look) {
  for (;;) {
    auto loan = pool_.take(context);
    if (!loan || !loan->needs(look) || (*loan)->healthy()) return loan;
    loan->discard();
  }
}

Result<Rows> CommonStore::ask(const Statement& statement, Parameters parameters,
                              const CallContext& context, Look look) {
  auto connection = TRY(healthy_connection(context, look));
  waiting::CallWait wait(context, closing_);
  auto rows = connection->run(statement, parameters, wait);
  if (connection->broken()) connection.discard();
  return rows;
}

// ---- what is rarely asked ------------------------------------------------------------------

void CommonStore::inspect(LockName lock, CallContext context, Completion<LockStatus> done) {
  const auto rows = ask(status_, {lock.str().c_str()}, context);
  auto locks = rows ? read_status(*rows) : fail(rows.error());
  if (!locks) return answer<LockStatus>(done, fail(std::move(locks.error())));
  if (locks->empty()) {
    return answer<LockStatus>(done, fail(ErrorCode::unavailable, "the table meta is empty"));
  }
  answer<LockStatus>(done, std::move(locks->front()));
}

void CommonStore::list(CallContext context, Completion<std::vector<LockStatus>> done) {
  const auto rows = ask(status_, {nullptr}, context);
  answer<std::vector<LockStatus>>(done, rows ? read_status(*rows) : fail(rows.error()));
}

void CommonStore::force_release(LockName lock, RequestId seen, CallContext context,
                                Completion<ReleaseReply> done) {
  const auto rows = ask(force_release_, {lock.str().c_str(), seen.hex().c_str()}, context);
  if (!rows) return answer<ReleaseReply>(done, fail(rows.error()));
  answer<ReleaseReply>(done, rows->flag(0) ? ReleaseReply::released : ReleaseReply::not_held);
}

void CommonStore::rotate_lineage(CallContext context, Completion<StoreId> done) {
  const StoreId rows_id = StoreId::random(random_);
  const StoreId sessions_id = StoreId::random(random_);
  const auto rows = ask(statement("", "SELECT @S.rotate($1, $2)"),
                        {rows_id.hex().c_str(), sessions_id.hex().c_str()}, context);
  if (!rows) return answer<StoreId>(done, fail(rows.error()));
  answer<StoreId>(done, own(rows_id, sessions_id));
}

void CommonStore::recall(LockName lock, std::string key, CallContext context,
                         Completion<std::optional<OnceRecord>> done) {
  using Found = std::optional<OnceRecord>;
  const auto rows =
      ask(statement("",
                    "SELECT pg_catalog.encode(parameters, 'hex'), pg_catalog.encode(result, 'hex') "
                    "FROM @S.once WHERE lock OPERATOR(pg_catalog.=) $1"
                    " AND key OPERATOR(pg_catalog.=) $2"),
          {lock.str().c_str(), key.c_str()}, context);
  if (!rows) return answer<Found>(done, fail(rows.error()));
  if (rows->count() == 0) return answer<Found>(done, Found());
  auto parameters = bytes_of(rows->text(0));
  auto result = bytes_of(rows->text(1));
  if (!parameters || !result) {
    return answer<Found>(done, fail(parameters ? result.error() : parameters.error()));
  }
  answer<Found>(done, OnceRecord{std::move(*parameters), std::move(*result)});
}

void CommonStore::record(LockName lock, RequestId request, std::string key, OnceRecord what,
                         CallContext context, Completion<std::monostate> done) {
  const auto rows = ask(record_,
                        {lock.str().c_str(), request.hex().c_str(), key.c_str(),
                         hex_of(what.parameters).c_str(), hex_of(what.result).c_str()},
                        context);
  if (!rows) return answer<std::monostate>(done, fail(rows.error()));
  if (rows->flag(0)) return answer<std::monostate>(done, std::monostate());
  answer<std::monostate>(
      done, fail(ErrorCode::lost,
                 "the lease of lock '" + lock.str() + "' ended before the result could be stored"));
}

}  // namespace leasehold::postgres
