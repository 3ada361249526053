#include "row_store.h"

#include <chrono>

#include "array.h"
#include "schema.h"
#include "status_rows.h"

namespace leasehold::postgres {
namespace {

constexpr auto kOpenWithin = std::chrono::seconds(5);

Statement statement(const char* name, const char* sql, const Options& options) {
  return {name, in_schema(sql, options.schema)};
}

std::string number(Millis span) {
  return std::to_string(span.count());
}

Result<AcquireReply> read_acquire(const Rows& rows, const AcquireCall& call) {
  const std::string_view outcome = rows.text(0);
  if (outcome == "granted") {
    const auto token = TokenNumber::of(rows.number(1));
    const auto store = rows.id<StoreId>(2);
    if (!token || !store) return fail(ErrorCode::outcome_unknown, "the server gave no token");
    return Granted{*token, *store, call.ttl.length()};
  }
  std::string ahead(rows.text(3));
  if (!OwnerLabel::parse(ahead)) ahead = ahead.empty() ? "" : "(an unreadable label)";
  if (outcome == "queued") return Queued{Millis(rows.number(4)), std::move(ahead)};
  return Busy{std::move(ahead)};
}

}  // namespace

// ---- opening -------------------------------------------------------------------------------

RowStore::RowStore(Options options, Random& random)
    : options_(std::move(options)),
      random_(random),
      acquire_(statement("acquire", "SELECT * FROM @S.acquire($1, $2, $3, $4, $5, $6)", options_)),
      renew_(statement("renew", "SELECT @S.renew($1, $2, $3)", options_)),
      release_(statement("release", "SELECT @S.release($1, $2, $3)", options_)),
      pool_(options_.connections, [this](const CallContext& context) { return connect(context); }),
      listener_([this](const CallContext& context) { return connect(context); },
                [this](const RequestId& request) { events_->nudged(request); }, random, closing_) {}

Result<std::unique_ptr<Store>> RowStore::open(Options options, Random& random) {
  const std::string address = options.address;
  std::unique_ptr<RowStore> store(new RowStore(std::move(options), random));
  if (auto ok = store->look_and_prepare(); !ok) {
    Error error = std::move(ok.error());
    // Nobody has asked for a lock yet: what is unknown about the schema is found out next time.
    if (error.code == ErrorCode::outcome_unknown) error.code = ErrorCode::unavailable;
    error.message = "cannot use " + address + ": " + error.message;
    return fail(std::move(error));
  }
  return store;
}

Status RowStore::look_and_prepare() {
  const CallContext context{BootClock::now() + kOpenWithin, {}};
  auto connection = Connection::open(options_.hosts, context, closing_);
  if (!connection) return fail(std::move(connection.error()));
  detail::CallWait wait(context, closing_);
  auto server = Server::look(**connection, options_, wait);
  if (!server) return fail(std::move(server.error()));
  server_ = std::move(*server);
  return ensure_schema(**connection, options_.schema, random_, wait);
}

// Behind a pooler the next transaction may be another session's: nothing can be prepared.
Result<std::unique_ptr<Connection>> RowStore::connect(const CallContext& context) {
  auto connection = Connection::open(options_.hosts, context, closing_);
  if (!connection || server_.pooled) return connection;
  detail::CallWait wait(context, closing_);
  auto ready = (*connection)->prepare(session_setup(), {&acquire_, &renew_, &release_}, wait);
  if (ready && ready->number(0) == (*connection)->announced_pid()) return connection;
  if (ready) return fail(ErrorCode::unavailable, "there is a connection pooler now, and was none");
  // The operation itself has not begun.
  Error error = std::move(ready.error());
  if (error.code == ErrorCode::outcome_unknown) {
    error.code = context.stop.stop_requested() ? ErrorCode::cancelled : ErrorCode::unavailable;
  }
  return fail(std::move(error));
}

void RowStore::close() {
  closing_.raise();
  pool_.close();
  listener_.stop();
}

// ---- asking --------------------------------------------------------------------------------

Result<Rows> RowStore::ask(const Statement& statement, Parameters parameters,
                           const CallContext& context) {
  for (;;) {
    auto connection = pool_.take(context);
    if (!connection) return fail(std::move(connection.error()));
    if (!(*connection)->healthy()) {
      connection->discard();
      continue;
    }
    detail::CallWait wait(context, closing_);
    auto rows = (*connection)->run(statement, parameters, wait);
    if ((*connection)->broken()) connection->discard();
    return rows;
  }
}

template <class Reply>
void RowStore::answer(const Completion<Reply>& done, Result<Reply> reply) const {
  if (!reply) reply.error().message = options_.address + ": " + reply.error().message;
  done(std::move(reply));
}

Result<AcquireReply> RowStore::acquire(const AcquireCall& call, const CallContext& context) {
  std::optional<std::int64_t> presence;
  if (call.queue && !server_.pooled) presence = listener_.presence(context);
  const std::string presence_text = presence ? std::to_string(*presence) : "";
  const std::string request = call.request.hex();
  if (call.queue) listener_.waits(call.request);
  const auto rows = ask(acquire_,
                        {call.lock.str().c_str(), request.c_str(), call.owner.str().c_str(),
                         number(call.ttl.length()).c_str(), call.queue ? "t" : "f",
                         presence ? presence_text.c_str() : nullptr},
                        context);
  auto reply = rows ? read_acquire(*rows, call) : fail(rows.error());
  const bool waits = reply && std::holds_alternative<Queued>(*reply);
  if (call.queue && reply && !waits) listener_.waits_no_more(call.request);
  return reply;
}

void RowStore::acquire(AcquireCall call, CallContext context, Completion<AcquireReply> done) {
  answer(done, acquire(call, context));
}

void RowStore::renew(std::vector<RenewCall> calls, CallContext context,
                     Completion<std::vector<RenewReply>> done) {
  TextArray locks;
  TextArray requests;
  TextArray ttls;
  for (const RenewCall& call : calls) {
    locks.add(call.lock.str());
    requests.add(call.request.hex());
    ttls.add(number(call.ttl.length()));
  }
  const auto rows = ask(renew_, {locks.c_str(), requests.c_str(), ttls.c_str()}, context);
  if (!rows) return answer<std::vector<RenewReply>>(done, fail(rows.error()));
  std::vector<RenewReply> replies;
  for (const bool renewed : read_flags(rows->text(0))) {
    replies.push_back(renewed ? RenewReply::renewed : RenewReply::gone);
  }
  answer<std::vector<RenewReply>>(done, std::move(replies));
}

void RowStore::release(ReleaseCall call, CallContext context, Completion<ReleaseReply> done) {
  listener_.waits_no_more(call.request);
  const auto rows =
      ask(release_,
          {call.lock.str().c_str(), call.request.hex().c_str(), number(call.keep_for).c_str()},
          context);
  if (!rows) return answer<ReleaseReply>(done, fail(rows.error()));
  answer<ReleaseReply>(done, rows->flag(0) ? ReleaseReply::released : ReleaseReply::not_held);
}

// ---- what is rarely asked ------------------------------------------------------------------

void RowStore::inspect(LockName lock, CallContext context, Completion<LockStatus> done) {
  const auto rows =
      ask(statement("", "SELECT * FROM @S.status($1)", options_), {lock.str().c_str()}, context);
  auto locks = rows ? read_status(*rows) : fail(rows.error());
  if (!locks) return answer<LockStatus>(done, fail(std::move(locks.error())));
  if (locks->size() != 1) {
    return answer<LockStatus>(done, fail(ErrorCode::unavailable, "the table meta is empty"));
  }
  answer<LockStatus>(done, std::move(locks->front()));
}

void RowStore::list(CallContext context, Completion<std::vector<LockStatus>> done) {
  const auto rows = ask(statement("", "SELECT * FROM @S.status($1)", options_), {nullptr}, context);
  answer<std::vector<LockStatus>>(done, rows ? read_status(*rows) : fail(rows.error()));
}

void RowStore::force_release(LockName lock, RequestId seen, CallContext context,
                             Completion<ReleaseReply> done) {
  const auto rows = ask(statement("", "SELECT @S.force_release($1, $2)", options_),
                        {lock.str().c_str(), seen.hex().c_str()}, context);
  if (!rows) return answer<ReleaseReply>(done, fail(rows.error()));
  answer<ReleaseReply>(done, rows->flag(0) ? ReleaseReply::released : ReleaseReply::not_held);
}

void RowStore::rotate_lineage(CallContext context, Completion<StoreId> done) {
  const StoreId rows_id = StoreId::random(random_);
  const StoreId sessions_id = StoreId::random(random_);
  const auto rows = ask(statement("", "SELECT @S.rotate($1, $2)", options_),
                        {rows_id.hex().c_str(), sessions_id.hex().c_str()}, context);
  if (!rows) return answer<StoreId>(done, fail(rows.error()));
  answer<StoreId>(done, rows_id);
}

void RowStore::recall(LockName lock, std::string key, CallContext context,
                      Completion<std::optional<OnceRecord>> done) {
  using Found = std::optional<OnceRecord>;
  const auto rows =
      ask(statement("", "SELECT parameters, result FROM @S.once WHERE lock = $1 AND key = $2",
                    options_),
          {lock.str().c_str(), key.c_str()}, context);
  if (!rows) return answer<Found>(done, fail(rows.error()));
  if (rows->count() == 0) return answer<Found>(done, Found());
  answer<Found>(done, OnceRecord{std::string(rows->text(0)), std::string(rows->text(1))});
}

void RowStore::record(LockName lock, RequestId request, std::string key, OnceRecord what,
                      CallContext context, Completion<std::monostate> done) {
  const auto rows = ask(statement("", "SELECT @S.record($1, $2, $3, $4, $5)", options_),
                        {lock.str().c_str(), request.hex().c_str(), key.c_str(),
                         what.parameters.c_str(), what.result.c_str()},
                        context);
  if (!rows) return answer<std::monostate>(done, fail(rows.error()));
  if (rows->flag(0)) return answer<std::monostate>(done, std::monostate());
  answer<std::monostate>(
      done, fail(ErrorCode::lost,
                 "the lease of lock '" + lock.str() + "' ended before the result could be stored"));
}

}  // namespace leasehold::postgres
