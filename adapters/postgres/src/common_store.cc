#include "common_store.h"

#include <chrono>

#include "bytes.h"
#include "kit/try.h"
#include "schema.h"
#include "status_rows.h"

namespace leasehold::postgres {

CommonStore::CommonStore(Options options, Random& random, Functions functions,
                         std::size_t connections, Calls calls)
    : BlockingStore(calls),
      options_(std::move(options)),
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
  return fail(error_at(options_.address, std::move(error)));
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
  return run_on(connection, statement, parameters, context);
}

Result<Rows> CommonStore::run_on(Pool::Loan& connection, const Statement& statement,
                                 Parameters parameters, const CallContext& context) {
  waiting::CallWait wait(context, closing_);
  auto rows = connection->run(statement, parameters, wait);
  if (connection->broken()) connection.discard();
  return rows;
}

// ---- what is rarely asked ------------------------------------------------------------------

Result<LockStatus> CommonStore::do_inspect(const InspectCall& call, const CallContext& context) {
  const auto rows = TRY(ask(status_, {call.lock.str().c_str()}, context));
  auto locks = TRY(read_status(rows));
  if (locks.empty()) return fail(ErrorCode::unavailable, "the table meta is empty");
  return std::move(locks.front());
}

Result<std::vector<LockStatus>> CommonStore::do_list(const CallContext& context) {
  const auto rows = TRY(ask(status_, {nullptr}, context));
  return read_status(rows);
}

Result<ReleaseReply> CommonStore::do_force_release(const ForceReleaseCall& call,
                                                   const CallContext& context) {
  const auto rows =
      TRY(ask(force_release_, {call.lock.str().c_str(), call.seen.hex().c_str()}, context));
  return rows.flag(0) ? ReleaseReply::released : ReleaseReply::not_held;
}

Result<StoreId> CommonStore::do_rotate_store_id(const CallContext& context) {
  const StoreId rows = StoreId::random(random_);
  const StoreId advisory = StoreId::random(random_);
  TRY(ask(statement("", "SELECT @S.rotate($1, $2)"), {rows.hex().c_str(), advisory.hex().c_str()},
          context));
  return own(rows, advisory);
}

// ---- what was done once --------------------------------------------------------------------

Result<std::optional<OnceRecord>> CommonStore::do_recall(const RecallCall& call,
                                                         const CallContext& context) {
  const auto rows = TRY(
      ask(statement("",
                    "SELECT pg_catalog.encode(parameters, 'hex'), pg_catalog.encode(result, 'hex')"
                    " FROM @S.once WHERE lock OPERATOR(pg_catalog.=) $1"
                    " AND key OPERATOR(pg_catalog.=) $2"),
          {call.lock.str().c_str(), call.key.c_str()}, context));
  if (rows.count() == 0) return std::nullopt;
  auto parameters = TRY(bytes_of(rows.text(0)));
  auto result = TRY(bytes_of(rows.text(1)));
  return OnceRecord{std::move(parameters), std::move(result)};
}

Status CommonStore::do_record(const RecordCall& call, const CallContext& context) {
  const auto rows =
      TRY(ask(record_,
              {call.lock.str().c_str(), call.request.hex().c_str(), call.key.c_str(),
               hex_of(call.what.parameters).c_str(), hex_of(call.what.result).c_str()},
              context));
  if (rows.flag(0)) return {};
  return fail(not_recorded(call.lock));
}

Result<std::vector<std::string>> CommonStore::do_list_keys(const ListKeysCall& call,
                                                           const CallContext& context) {
  const auto rows = TRY(ask(
      statement("", "SELECT key FROM @S.once WHERE lock OPERATOR(pg_catalog.=) $1 ORDER BY key"),
      {call.lock.str().c_str()}, context));
  std::vector<std::string> keys;
  for (int row = 0; row < rows.count(); ++row) keys.emplace_back(rows.text(0, row));
  return keys;
}

Result<bool> CommonStore::do_forget(const ForgetCall& call, const CallContext& context) {
  const auto rows = TRY(ask(statement("",
                                      "DELETE FROM @S.once WHERE lock OPERATOR(pg_catalog.=) $1"
                                      " AND key OPERATOR(pg_catalog.=) $2"),
                            {call.lock.str().c_str(), call.key.c_str()}, context));
  return rows.changed() > 0;
}

}  // namespace leasehold::postgres
