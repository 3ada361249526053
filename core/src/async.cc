#include "leasehold/async.h"

#include <atomic>
#include <functional>
#include <optional>

#include "client_core.h"
#include "kit/try.h"
#include "once_access.h"

namespace leasehold {
namespace {

using detail::ClientCore;

// One question to the store. It is told once, whatever becomes of it. While it stands in line for a
// thread it hears its deadline and its stop here, then the store does.
template <class Reply>
class Question final : public detail::Unasked {
 public:
  Question(ClientCore& core, CallContext limits, OnResult<Reply> done)
      : context(std::move(limits)), core_(core), done_(std::move(done)) {}
  ~Question() override { answer(fail(detail::client_went())); }
  Question(const Question&) = delete;

  const CallContext context;

  void stand_in_line(const std::shared_ptr<Question>& self) {
    core_.stand_in_line(place(), self);
    on_stop_.emplace(context.stop, [this] {
      leave(Error(ErrorCode::cancelled, "stop was requested before the store was asked"));
    });
  }
  void time_is_over() override {
    leave(Error(ErrorCode::unavailable, "the time for it was over before the store was asked"));
  }
  // False if it has been told already.
  bool begin() { return move(Stage::in_line, Stage::asked); }
  void leave_line() const { core_.leave_line(place()); }
  void answer(Result<Reply> reply) {
    if (stage_.exchange(Stage::told) != Stage::told) tell(std::move(reply));
  }

 private:
  enum class Stage { in_line, asked, told };

  ClientCore::PlaceInLine place() const { return {context.deadline, this}; }
  bool move(Stage from, Stage to) { return stage_.compare_exchange_strong(from, to); }
  void leave(Error why) {
    if (!move(Stage::in_line, Stage::told)) return;
    tell(fail(error_at(core_.traits().address, std::move(why))));
  }
  void tell(Result<Reply> reply) { core_.tell_later(std::move(done_), std::move(reply)); }

  ClientCore& core_;
  OnResult<Reply> done_;
  std::atomic<Stage> stage_ = Stage::in_line;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

// `ready`: why it is not to be asked.
template <class Reply, class Send>
void ask(ClientCore& core, const CallOptions& options, OnResult<Reply> done, Status ready,
         Send send) {
  if (ready) ready = detail::check_store_timeout(options.store_timeout);
  if (ready) ready = core.start_async();
  if (!ready) return core.tell_later<Reply>(std::move(done), fail(std::move(ready.error())));
  const auto question = std::make_shared<Question<Reply>>(
      core, CallContext{core.clock().now() + options.store_timeout, options.stop}, std::move(done));
  question->stand_in_line(question);
  core.asking().post(
      [&core, question, send = std::move(send)] {
        if (!question->begin()) return question->leave_line();
        try {
          send(core.store(), question->context,
               [question](Result<Reply> reply) { question->answer(std::move(reply)); });
        } catch (const std::exception& thrown) {
          question->answer(
              fail(ErrorCode::outcome_unknown, "the store failed unexpectedly", thrown.what()));
        }
        question->leave_line();
      },
      detail::TaskThreads::Turn::before_others);
}

// For a question whose answer says only that it was done.
OnResult<std::monostate> without_value(OnResult<void> done) {
  return [done = std::move(done)](Result<std::monostate> reply) mutable {
    done(reply ? Status() : fail(std::move(reply.error())));
  };
}

}  // namespace

void AsyncClient::acquire(const LockName& lock, AcquireOptions options,
                          OnResult<Lease> done) const {
  client_.core_->begin_acquire(Result<LockName>(lock), std::move(options), std::move(done));
}
void AsyncClient::acquire(std::string_view lock, AcquireOptions options,
                          OnResult<Lease> done) const {
  client_.core_->begin_acquire(LockName::parse(lock), std::move(options), std::move(done));
}
void AsyncClient::acquire_fenced(const LockName& lock, AcquireOptions options,
                                 OnResult<FencedLease> done) const {
  client_.core_->begin_acquire(Result<LockName>(lock), std::move(options), std::move(done));
}
void AsyncClient::acquire_fenced(std::string_view lock, AcquireOptions options,
                                 OnResult<FencedLease> done) const {
  client_.core_->begin_acquire(LockName::parse(lock), std::move(options), std::move(done));
}

void AsyncClient::release(Lease&& lease, CallOptions options, OnResult<ReleaseOutcome> done) const {
  end(lease, Millis(0), std::move(options), std::move(done));
}

void AsyncClient::release_after(Lease&& lease, Millis keep_for, CallOptions options,
                                OnResult<ReleaseOutcome> done) const {
  if (auto can = lease.check_keeping(); !can) {
    return client_.core_->tell_later<ReleaseOutcome>(std::move(done), fail(std::move(can.error())));
  }
  end(lease, keep_for, std::move(options), std::move(done));
}

void AsyncClient::end(Lease& lease, Millis keep_for, CallOptions options,
                      OnResult<ReleaseOutcome> done) {
  ClientCore& core = *lease.control_->core;
  auto ready = lease.control_->in_forked_child() ? lease.require() : core.start_async();
  if (!ready)
    return core.tell_later<ReleaseOutcome>(std::move(done), fail(std::move(ready.error())));
  if (!lease.control_->begin_release()) {
    return core.tell_later<ReleaseOutcome>(std::move(done), ReleaseOutcome::too_late);
  }
  core.begin_release(std::move(lease.control_), keep_for, std::move(options), std::move(done));
}

void AsyncClient::inspect(LockName lock, CallOptions options, OnResult<LockStatus> done) const {
  ask(*client_.core_, options, std::move(done), {},
      [lock = std::move(lock)](Store& store, const CallContext& context, auto then) {
        store.inspect(lock, context, std::move(then));
      });
}

void AsyncClient::list(CallOptions options, OnResult<std::vector<LockStatus>> done) const {
  ask(*client_.core_, options, std::move(done), {},
      [](Store& store, const CallContext& context, auto then) {
        store.list(context, std::move(then));
      });
}

void AsyncClient::force_release(LockName lock, RequestId seen, CallOptions options,
                                OnResult<ReleaseReply> done) const {
  ask(*client_.core_, options, std::move(done), {},
      [lock = std::move(lock), seen](Store& store, const CallContext& context, auto then) {
        store.force_release(lock, seen, context, std::move(then));
      });
}

void AsyncClient::set_permits(LockName lock, std::optional<std::int64_t> permits,
                              CallOptions options, OnResult<void> done) const {
  ClientCore& core = *client_.core_;
  const auto ready = [&]() -> Status {
    if (permits) TRY(Mode::permit_of(*permits).check());
    return core.check_modes();
  };
  ask(core, options, without_value(std::move(done)), ready(),
      [lock = std::move(lock), permits](Store& store, const CallContext& context, auto then) {
        store.set_permits(lock, permits, context, std::move(then));
      });
}

void AsyncClient::rotate_store_id(CallOptions options, OnResult<StoreId> done) const {
  ask(*client_.core_, options, std::move(done), {},
      [](Store& store, const CallContext& context, auto then) {
        store.rotate_store_id(context, std::move(then));
      });
}

void AsyncClient::recall(LockName lock, std::string key, CallOptions options,
                         OnResult<std::optional<OnceRecord>> done) const {
  auto ready = detail::check_records_under(*client_.core_, key);
  ask(*client_.core_, options, std::move(done), std::move(ready),
      [lock = std::move(lock), key = std::move(key)](Store& store, const CallContext& context,
                                                     auto then) {
        store.once_records()->recall(lock, key, context, std::move(then));
      });
}

void AsyncClient::record(LockName lock, RequestId holder, std::string key, OnceRecord what,
                         CallOptions options, OnResult<void> done) const {
  auto ready = detail::check_records_under(*client_.core_, key);
  ask(*client_.core_, options, without_value(std::move(done)), std::move(ready),
      [lock = std::move(lock), holder, key = std::move(key), what = std::move(what)](
          Store& store, const CallContext& context, auto then) {
        store.once_records()->record(lock, holder, key, what, context, std::move(then));
      });
}

void AsyncClient::recorded_keys(LockName lock, CallOptions options,
                                OnResult<std::vector<std::string>> done) const {
  auto ready = detail::check_records(*client_.core_);
  ask(*client_.core_, options, std::move(done), std::move(ready),
      [lock = std::move(lock)](Store& store, const CallContext& context, auto then) {
        store.once_records()->list_keys(lock, context, std::move(then));
      });
}

void AsyncClient::forget(LockName lock, std::string key, CallOptions options,
                         OnResult<bool> done) const {
  auto ready = detail::check_records_under(*client_.core_, key);
  ask(*client_.core_, options, std::move(done), std::move(ready),
      [lock = std::move(lock), key = std::move(key)](Store& store, const CallContext& context,
                                                     auto then) {
        store.once_records()->forget(lock, key, context, std::move(then));
      });
}

}  // namespace leasehold
