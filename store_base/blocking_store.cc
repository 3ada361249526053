#include "store_base/blocking_store.h"
#include "kit/text/visible_text.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace leasehold {
namespace {

constexpr int kClosed = 1;
constexpr int kOneCall = 2;

tl::unexpected<Error> failed_unexpectedly(const std::exception& thrown) {
  return fail(ErrorCode::outcome_unknown, "the store failed unexpectedly", thrown.what());
}

template <class Reply, class Method>
Result<Reply> guarded(const Method& method) {
  try {
    return method();
  } catch (const std::exception& exception) {
    return failed_unexpectedly(exception);
  }
}

}  // namespace

Error not_recorded(const LockName& lock) {
  return Error(ErrorCode::lost, "the lease of lock " + kit::in_quotes(lock.str()) +
                                    " ended before the result could be stored");
}

class BlockingStore::Visit {
 public:
  explicit Visit(std::atomic<int>& calls)
      : calls_(calls), too_late_((calls.fetch_add(kOneCall) & kClosed) != 0) {}
  // Who waits in close() may delete the store as soon as the number is there: notify_all() uses
  // only its address.
  ~Visit() {
    if (calls_.fetch_sub(kOneCall) == kClosed + kOneCall) calls_.notify_all();
  }
  Visit(const Visit&) = delete;

  // Why a call may not begin.
  std::optional<Error> objection(const CallContext& context, BootTime now) const {
    if (too_late_) return Error(ErrorCode::unavailable, "the store is closed");
    if (now < context.deadline) return std::nullopt;
    return Error(ErrorCode::unavailable, "the time for it was over before it began");
  }

 private:
  std::atomic<int>& calls_;
  const bool too_late_;
};

struct BlockingStore::Alone {
  BlockingStore& store;

  void operator()(auto* asked) const {
    if (asked->begin()) asked->answer(reply(asked->call, asked->context));
  }

  auto reply(const AcquireCall& call, const CallContext& context) const {
    return store.do_acquire(call, context);
  }
  auto reply(const std::vector<RenewCall>& calls, const CallContext& context) const {
    return store.do_renew(calls, context);
  }
  auto reply(const ReleaseCall& call, const CallContext& context) const {
    return store.do_release(call, context);
  }
  auto reply(const InspectCall& call, const CallContext& context) const {
    return store.do_inspect(call, context);
  }
  auto reply(const ListCall&, const CallContext& context) const { return store.do_list(context); }
  auto reply(const ForceReleaseCall& call, const CallContext& context) const {
    return store.do_force_release(call, context);
  }
  auto reply(const SetPermitsCall& call, const CallContext& context) const {
    return store.do_set_permits(call, context).map([] { return std::monostate(); });
  }
  auto reply(const RotateCall&, const CallContext& context) const {
    return store.do_rotate_store_id(context);
  }
  auto reply(const RecallCall& call, const CallContext& context) const {
    return store.do_recall(call, context);
  }
  auto reply(const RecordCall& call, const CallContext& context) const {
    return store.do_record(call, context).map([] { return std::monostate(); });
  }
  auto reply(const ListKeysCall& call, const CallContext& context) const {
    return store.do_list_keys(call, context);
  }
  auto reply(const ForgetCall& call, const CallContext& context) const {
    return store.do_forget(call, context);
  }
};

BlockingStore::BlockingStore(Calls calls, Millis patience)
    : line_(calls == Calls::apart
                ? nullptr
                : std::make_unique<Line>([this](const Line::Batch& batch) { return carry(batch); },
                                         patience)) {}

CallContext limits_of(std::span<const AnyAsked> batch) {
  const auto context_of = [](const AnyAsked& one) -> const CallContext& {
    return std::visit([](auto* asked) -> const CallContext& { return asked->context; }, one);
  };
  if (batch.size() == 1) return context_of(batch.front());
  CallContext limits{BootTime::min(), {}};
  for (const AnyAsked& one : batch) {
    const CallContext& context = context_of(one);
    limits.deadline = std::max(limits.deadline, context.deadline);
    limits.urgent = limits.urgent || context.urgent;
  }
  return limits;
}

void BlockingStore::answer(std::span<const AnyAsked> batch) {
  for (const AnyAsked& asked : batch) std::visit(Alone{*this}, asked);
}

// A batch from its departure until each of its calls has ended, whatever is thrown.
class BlockingStore::Trip final : public Line::Trip {
 public:
  explicit Trip(const Line::Batch& batch) {
    all_.reserve(batch.size());
    for (const auto& rider : batch) all_.push_back(static_cast<AskedRider&>(*rider).asked());
  }

  // True if some of it is still to be done.
  bool depart(BlockingStore& store) {
    do_part([&] { rest_ = store.depart(all_); });
    if (!rest_) end();
    return rest_ != nullptr;
  }
  void arrive() override {
    do_part([&] { rest_->arrive(); });
    end();
  }
  bool can_be_followed() const override { return rest_->can_be_followed(); }

 private:
  void do_part(const auto& part) {
    try {
      part();
    } catch (const std::exception& exception) {
      for (const AnyAsked& one : all_) {
        std::visit(
            [&](auto* asked) {
              if (asked->has_begun()) asked->answer(failed_unexpectedly(exception));
            },
            one);
      }
    }
  }
  void end() {
    for (const AnyAsked& one : all_) std::visit([](auto* asked) { asked->left_behind(); }, one);
  }

  std::vector<AnyAsked> all_;
  std::unique_ptr<Line::Trip> rest_;
};

std::unique_ptr<Line::Trip> BlockingStore::carry(const Line::Batch& batch) {
  auto trip = std::make_unique<Trip>(batch);
  if (!trip->depart(*this)) return nullptr;
  return trip;
}

template <class Reply, class Call>
Result<Reply> BlockingStore::alone(const Call& call, const CallContext& context) {
  return guarded<Reply>([&] { return Alone{*this}.reply(call, context); });
}

template <class Call, class Reply>
Result<Reply> BlockingStore::ride(const std::shared_ptr<Asked<Call, Reply>>& asked, BootTime now) {
  switch (line_->ride(asked, now)) {
    case Line::Ride::answered:
      return std::move(*asked->reply);
    case Line::Ride::on_its_own:
      return alone<Reply>(asked->call, asked->context);
    case Line::Ride::not_begun:
      return fail(ErrorCode::unavailable, "the time for it was over before it began");
    case Line::Ride::not_finished:
      break;
  }
  const bool stopped = asked->context.stop.stop_requested();
  return fail(ErrorCode::outcome_unknown,
              std::string(stopped ? "stop was requested" : "the time for it was over") +
                  " while waiting for an answer");
}

template <class Call, class Reply>
void BlockingStore::ask_with_others(Call call, CallContext context, const Completion<Reply>& done) {
  if (!line_) return ask(std::move(call), std::move(context), done);
  const Visit visit(calls_);
  const BootTime now = BootClock::now();
  if (auto objection = visit.objection(context, now)) {
    return finish<Call, Reply>(call, context, fail(std::move(*objection)), done);
  }
  if (line_->go_first(now)) {
    auto reply = [&] {
      const Line::First first(*line_);
      return alone<Reply>(call, context);
    }();
    return finish(call, context, std::move(reply), done);
  }
  const auto asked = std::make_shared<Asked<Call, Reply>>(std::move(call), std::move(context));
  finish(asked->call, asked->context, ride(asked, now), done);
}

template <class Call, class Reply>
void BlockingStore::ask(Call call, CallContext context, const Completion<Reply>& done) {
  const Visit visit(calls_);
  auto objection = visit.objection(context, BootClock::now());
  finish<Call, Reply>(call, context,
                      objection ? fail(std::move(*objection)) : alone<Reply>(call, context), done);
}

template <class Call, class Reply>
void BlockingStore::finish(const Call& call, const CallContext& context, Result<Reply> reply,
                           const Completion<Reply>& done) {
  if constexpr (std::is_same_v<Reply, AcquireReply>) {
    if (reply && std::holds_alternative<Queued>(*reply)) {
      reply = guarded<Reply>([&] { return queued(call, context, std::get<Queued>(*reply)); });
    }
  }
  note(call, reply);
  if (!reply) {
    Error& error = reply.error();
    error.address = traits().address;
    const bool not_done = error.code == ErrorCode::unavailable;
    if (not_done && context.stop.stop_requested()) error.code = ErrorCode::cancelled;
  }
  done(std::move(reply));
}

void BlockingStore::note(const AcquireCall& call, const Result<AcquireReply>& reply) {
  if (!reply && reply.error().code == ErrorCode::outcome_unknown) doubts_.doubt(call.request);
}

void BlockingStore::note(const ReleaseCall& call, const Result<ReleaseReply>& reply) {
  if (reply) doubts_.settle(call.request);
}

void BlockingStore::close() {
  if ((calls_.fetch_or(kClosed) & kClosed) == 0) do_close();
  for (int calls = calls_; calls != kClosed; calls = calls_) calls_.wait(calls);
  if (line_) line_->close();
}

// ---- each kind of call ---------------------------------------------------------------------

void BlockingStore::acquire(AcquireCall call, CallContext context, Completion<AcquireReply> done) {
  ask_with_others(std::move(call), std::move(context), done);
}

void BlockingStore::renew(std::vector<RenewCall> calls, CallContext context,
                          Completion<std::vector<RenewReply>> done) {
  if (calls.empty()) return done(std::vector<RenewReply>());
  ask_with_others(std::move(calls), std::move(context), done);
}

void BlockingStore::release(ReleaseCall call, CallContext context, Completion<ReleaseReply> done) {
  ask_with_others(std::move(call), std::move(context), done);
}

void BlockingStore::inspect(LockName lock, CallContext context, Completion<LockStatus> done) {
  ask(InspectCall{std::move(lock)}, std::move(context), done);
}

void BlockingStore::list(CallContext context, Completion<std::vector<LockStatus>> done) {
  ask(ListCall{}, std::move(context), done);
}

void BlockingStore::force_release(LockName lock, RequestId seen, CallContext context,
                                  Completion<ReleaseReply> done) {
  ask(ForceReleaseCall{std::move(lock), seen}, std::move(context), done);
}

void BlockingStore::set_permits(LockName lock, std::optional<std::int64_t> permits,
                                CallContext context, Completion<std::monostate> done) {
  ask(SetPermitsCall{std::move(lock), permits}, std::move(context), done);
}

void BlockingStore::rotate_store_id(CallContext context, Completion<StoreId> done) {
  ask(RotateCall{}, std::move(context), done);
}

void BlockingStore::recall(LockName lock, std::string key, CallContext context,
                           Completion<std::optional<OnceRecord>> done) {
  ask(RecallCall{std::move(lock), std::move(key)}, std::move(context), done);
}

void BlockingStore::record(LockName lock, RequestId request, std::string key, OnceRecord what,
                           CallContext context, Completion<std::monostate> done) {
  ask(RecordCall{std::move(lock), request, std::move(key), std::move(what)}, std::move(context),
      done);
}

void BlockingStore::list_keys(LockName lock, CallContext context,
                              Completion<std::vector<std::string>> done) {
  ask(ListKeysCall{std::move(lock)}, std::move(context), done);
}

void BlockingStore::forget(LockName lock, std::string key, CallContext context,
                           Completion<bool> done) {
  ask(ForgetCall{std::move(lock), std::move(key)}, std::move(context), done);
}

}  // namespace leasehold
