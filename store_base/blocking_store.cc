#include "store_base/blocking_store.h"
#include "kit/text/visible_text.h"

#include <exception>
#include <utility>

namespace leasehold {
namespace {

constexpr int kClosed = 1;
constexpr int kOneCall = 2;

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
  std::optional<Error> objection(const CallContext& context) const {
    if (too_late_) return Error(ErrorCode::unavailable, "the store is closed");
    if (BootClock::now() < context.deadline) return std::nullopt;
    return Error(ErrorCode::unavailable, "the time for it was over before it began");
  }

 private:
  std::atomic<int>& calls_;
  const bool too_late_;
};

struct BlockingStore::Alone {
  BlockingStore& store;

  void operator()(auto* asked) const { asked->reply = reply(asked->call, asked->context); }

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

void BlockingStore::answer(std::span<const AnyAsked> batch) {
  for (const AnyAsked& asked : batch) std::visit(Alone{*this}, asked);
}

template <class Call, class Reply>
void BlockingStore::ask(Call call, CallContext context, const Completion<Reply>& done) {
  const Visit visit(calls_);
  Asked<Call, Reply> asked{std::move(call), std::move(context)};
  std::string thrown;
  if (auto objection = visit.objection(asked.context)) {
    asked.reply = fail(std::move(*objection));
  } else {
    const AnyAsked one = &asked;
    try {
      answer({&one, 1});
    } catch (const std::exception& exception) {
      thrown = exception.what();
    }
  }
  if (!asked.reply) {
    asked.reply = fail(ErrorCode::outcome_unknown, "the store failed unexpectedly", thrown);
  }
  note(asked.call, *asked.reply);
  if (!*asked.reply) {
    Error& error = asked.reply->error();
    error.address = traits().address;
    const bool not_done = error.code == ErrorCode::unavailable;
    if (not_done && asked.context.stop.stop_requested()) error.code = ErrorCode::cancelled;
  }
  done(std::move(*asked.reply));
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
}

// ---- each kind of call ---------------------------------------------------------------------

void BlockingStore::acquire(AcquireCall call, CallContext context, Completion<AcquireReply> done) {
  ask(std::move(call), std::move(context), done);
}

void BlockingStore::renew(std::vector<RenewCall> calls, CallContext context,
                          Completion<std::vector<RenewReply>> done) {
  ask(std::move(calls), std::move(context), done);
}

void BlockingStore::release(ReleaseCall call, CallContext context, Completion<ReleaseReply> done) {
  ask(std::move(call), std::move(context), done);
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
