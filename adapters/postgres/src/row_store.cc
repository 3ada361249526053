#include "row_store.h"

#include "array.h"
#include "kit/try.h"
#include "store_base/mode_conflict.h"
#include "together.h"

namespace leasehold::postgres {
namespace {

constexpr int kLively = 9;

Result<AcquireReply> read_acquire(const Rows& rows, const AcquireCall& call) {
  const std::string_view outcome = rows.text(0);
  if (outcome == "granted") {
    const auto token = TokenNumber::of(rows.number(1));
    const auto store = rows.id<StoreId>(2);
    if (!token || !store) return fail(ErrorCode::outcome_unknown, "the server gave no token");
    return Granted{*token, *store, call.ttl.length(), rows.flag(5),
                   rows.is_null(6) ? std::nullopt : std::optional(Slot{rows.number(6)})};
  }
  if (outcome == "conflict") {
    const Mode used = Mode::from_code(rows.number(7)).value_or(Mode::exclusive());
    return fail(mode_conflict(call.lock, call.mode, used, rows.flag(8)));
  }
  std::string ahead = label_or_nothing(rows.text(3));
  if (outcome == "queued") return Queued{Millis(rows.number(4)), std::move(ahead)};
  return Busy{std::move(ahead)};
}

}  // namespace

// ---- opening -------------------------------------------------------------------------------

RowStore::RowStore(Options options, Random& random)
    : CommonStore(options, random,
                  {.status = "status", .force_release = "force_release", .record = "record"},
                  options.connections, Calls::together),
      acquire_(
          statement("acquire", "SELECT * FROM @S.acquire($1, $2, $3, $4, $5, $6, $7, $8, $9)")),
      renew_(statement("renew", "SELECT @S.renew($1, $2, $3)")),
      release_(statement("release", "SELECT @S.release($1, $2, $3, $4, true)")),
      together_(statement("together", Together::kSql)),
      doze_(statement("doze", "SELECT @S.doze($1, $2, $3)")),
      listener_(
          {doze_, statement("", "SELECT @S.first_in_line($1, $2)")},
          [this](const CallContext& context) { return connect(context); },
          [this](const RequestId& request) { events().nudged(request); }, random, closing_) {}

Result<std::unique_ptr<Store>> RowStore::open(Options options, Random& random,
                                              const CallContext& context) {
  std::unique_ptr<RowStore> store(new RowStore(std::move(options), random));
  TRY(store->prepare(context));
  return store;
}

void RowStore::do_close() {
  closing_.raise();
  pool_.close();
  listener_.stop();
}

// ---- asking --------------------------------------------------------------------------------

// What is certain not to be done goes on its own: if the server refused, or was not asked.
void RowStore::answer(std::span<const AnyAsked> batch) {
  if (batch.size() == 1) return CommonStore::answer(batch);
  Together together(batch, doubts());
  if (!together.is_several()) return;
  const CallContext limits = limits_of(batch);
  auto connection = healthy_connection(limits, Look::if_rested);
  if (!connection) return;
  const auto all = together.begin();
  // Whose caller has gone on its own may wait there.
  for (const AnyAsked& one : batch) {
    std::visit(
        [this](auto* asked) {
          if (asked->has_begun()) waits_no_more(asked->call);
        },
        one);
  }
  if (together.is_empty()) return;
  const auto rows =
      run_on(*connection, together_,
             {all.locks.c_str(), all.requests.c_str(), all.owners.c_str(), all.ttls.c_str(),
              all.notes.c_str(), all.released_locks.c_str(), all.released_requests.c_str()},
             limits);
  if (rows) return together.answer(*rows);
  if (rows.error().code == ErrorCode::outcome_unknown) together.answer(rows.error());
}

Result<AcquireReply> RowStore::do_acquire(const AcquireCall& call, const CallContext& context) {
  std::optional<Listener::Presence> presence;
  if (call.queue && !server_.pooled) presence = listener_.presence(context);
  const std::string number_text = presence ? std::to_string(presence->number) : "";
  const std::string pid_text = presence ? std::to_string(presence->pid) : "";
  const std::string request = call.request.hex();
  if (call.queue) listener_.waits(call.request);
  const auto rows =
      ask(acquire_,
          {call.lock.str().c_str(), request.c_str(), call.owner.str().c_str(),
           number(call.ttl.length()).c_str(), call.queue ? "t" : "f",
           presence ? number_text.c_str() : nullptr, std::to_string(call.mode.code()).c_str(),
           call.note.str().c_str(), presence ? pid_text.c_str() : nullptr},
          context, Look::if_rested);
  auto reply = rows ? read_acquire(*rows, call) : fail(rows.error());
  const bool waits = reply && std::holds_alternative<Queued>(*reply);
  // If nobody knows whether it waits, its release will come.
  const bool may_wait = waits || (!reply && reply.error().code == ErrorCode::outcome_unknown);
  if (!may_wait) waits_no_more(call);
  if (waits && rows->flag(kLively)) listener_.doze();
  return reply;
}

Result<std::vector<RenewReply>> RowStore::do_renew(const std::vector<RenewCall>& calls,
                                                   const CallContext& context) {
  TextArray locks;
  TextArray requests;
  TextArray ttls;
  for (const RenewCall& call : calls) {
    locks.add(call.lock.str());
    requests.add(call.request.hex());
    ttls.add(number(call.ttl.length()));
  }
  const auto rows =
      TRY(ask(renew_, {locks.c_str(), requests.c_str(), ttls.c_str()}, context, Look::if_rested));
  std::vector<RenewReply> replies;
  for (const bool renewed : read_flags(rows.text(0))) {
    replies.push_back(renewed ? RenewReply::renewed : RenewReply::gone);
  }
  return replies;
}

Result<ReleaseReply> RowStore::do_release(const ReleaseCall& call, const CallContext& context) {
  waits_no_more(call);
  const auto rows =
      TRY(ask(release_,
              {call.lock.str().c_str(), call.request.hex().c_str(), number(call.keep_for).c_str(),
               doubts().doubts(call.request) ? "t" : "f"},
              context, Look::if_rested));
  return rows.flag(0) ? ReleaseReply::released : ReleaseReply::not_held;
}

Status RowStore::do_set_permits(const SetPermitsCall& call, const CallContext& context) {
  const std::string permits = call.permits ? std::to_string(*call.permits) : "";
  const auto rows =
      TRY(ask(statement("", "SELECT @S.set_permits($1, $2)"),
              {call.lock.str().c_str(), call.permits ? permits.c_str() : nullptr}, context));
  if (rows.is_null(0)) return {};
  const Mode used = Mode::from_code(rows.number(0)).value_or(Mode::exclusive());
  return fail(in_use_without_permits(call.lock, used));
}

}  // namespace leasehold::postgres
