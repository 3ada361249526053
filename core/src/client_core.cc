#include "client_core.h"

#include <chrono>

#include "kit/text/visible_text.h"
#include "kit/try.h"

namespace leasehold::detail {
namespace {

constexpr auto kCloseTimeout = std::chrono::seconds(2);

}  // namespace

BootClock::duration LeaseEnd::left(const Clock& clock) const {
  BootClock::rep word = word_.load();
  for (;;) {
    if ((word & kEnded) != 0) return {};
    const auto left = deadline_of(word) - clock.now();
    if (left > BootClock::duration()) return left;
    if (word_.compare_exchange_strong(word, word | kEnded)) return {};
  }
}

bool LeaseEnd::move(BootTime deadline) {
  BootClock::rep word = word_.load();
  while ((word & kEnded) == 0) {
    if (word_.compare_exchange_strong(word, word_of(deadline))) return true;
  }
  return false;
}

LeaseControl::LeaseControl(std::shared_ptr<ClientCore> owner, engine::Grant given)
    : core(std::move(owner)),
      grant(std::move(given)),
      token{grant.token, Lineage{grant.store, grant.lock}, grant.request},
      end(grant.deadline) {}

bool LeaseControl::in_forked_child() const {
  return core->process().is_forked_child();
}

BootClock::duration LeaseControl::remaining() const {
  if (in_forked_child()) return {};
  return end.left(core->clock());
}

LeaseState LeaseControl::state() const {
  if (remaining() == BootClock::duration()) return LeaseState::lost;
  return uncertain ? LeaseState::uncertain : LeaseState::held;
}

std::shared_ptr<ClientCore> ClientCore::make(std::unique_ptr<Store> store, ConnectOptions options) {
  std::shared_ptr<ClientCore> core(new ClientCore(std::move(store), std::move(options)),
                                   [](ClientCore* dying) {
                                     // A forked child has none of the threads: leave it all as is.
                                     if (!dying->process_.is_forked_child()) delete dying;
                                   });
  core->store_->start(*core);
  return core;
}

ClientCore::ClientCore(std::unique_ptr<Store> store, ConnectOptions options)
    : clock_(options.clock != nullptr ? *options.clock : system_clock()),
      owner_(options.owner ? *options.owner : default_owner_label()),
      store_(std::move(store)),
      engine_(store_->traits().queues,
              options.random != nullptr ? *options.random : system_random(),
              store_->traits().address),
      watches_(*store_, clock_),
      timer_([this] { on_time(); }) {
  callbacks_.start();
  calls_.start();
}

ClientCore::~ClientCore() {
  cancel_all();
  {
    MutexLock lock(mutex_);
    settled_.wait_for(mutex_, kCloseTimeout,
                      [this]() LEASEHOLD_REQUIRES(mutex_) { return engine_.settled(); });
  }
  store_->close();  // first: it ends the calls that the threads below may be in
  watches_.stop();
  timer_.stop();
  for (TaskThreads& lane : renewals_) lane.stop();
  calls_.stop();
  asking_.stop();
  completions_.stop();  // last: what was pending is told here, and its stop callbacks use all this
}

Status ClientCore::check_process() const {
  if (!process_.is_forked_child()) return {};
  return fail(ErrorCode::invalid, "this client belongs to process " +
                                      std::to_string(process_.id()) +
                                      "; a forked child does not have it");
}

Status ClientCore::check_modes() const {
  if (traits().modes) return {};
  return fail(error_at(
      traits().address,
      Error(ErrorCode::unsupported,
            "this store grants exclusive locks only, without notes: " + traits().why_no_modes)));
}

// ---- callers -------------------------------------------------------------------------------

Result<Lease> ClientCore::acquire(const LockName& lock, const AcquireOptions& options) {
  auto taken = TRY(take(lock, options));
  return Lease(std::move(taken));
}

Result<FencedLease> ClientCore::acquire_fenced(const LockName& lock,
                                               const AcquireOptions& options) {
  TRY(check_fenced());
  auto taken = TRY(take(lock, options));
  return FencedLease(std::move(taken));
}

Status ClientCore::check_fenced() const {
  TRY(check_process());
  if (traits().guarantee == Guarantee::correctness) return {};
  return fail(error_at(traits().address, Error(ErrorCode::unsafe_for_correctness,
                                               "this store gives no safe tokens: " + traits().why +
                                                   ". " + traits().instead)));
}

Result<engine::AcquireSpec> ClientCore::prepare(const LockName& lock,
                                                const AcquireOptions& options) {
  TRY(check_process());
  const auto ttl = TRY(Ttl::of(options.ttl));
  if (options.wait < Millis(0)) return fail(ErrorCode::invalid, "wait is negative");
  TRY(options.mode.check());
  auto note = TRY(Note::parse(options.note));
  if (!options.mode.is_exclusive() || !note.empty()) TRY(check_modes());
  TRY(check_store_timeout(options.store_timeout));
  if (options.stop.stop_requested()) {
    return fail(ErrorCode::cancelled,
                "stop was requested before lock " + kit::in_quotes(lock.str()) + " was asked for");
  }

  try {
    renewals_[engine::renewal_lane(ttl.length())].start();
  } catch (const std::system_error& error) {
    return fail(cannot_start(error));
  }

  return engine::AcquireSpec{lock,         owner_,         ttl, options.wait, options.store_timeout,
                             options.mode, std::move(note)};
}

Result<ClientCore::LeasePointer> ClientCore::take(const LockName& lock,
                                                  const AcquireOptions& options) {
  auto spec = TRY(prepare(lock, options));
  CallersSlot<LeasePointer> slot(options.stop);
  std::optional<RequestId> request;
  make_calls(begin(std::move(spec), slot, request), options.stop);
  return await(slot, *request, options.stop);
}

ClientCore::Calls ClientCore::begin(engine::AcquireSpec spec, AcquireSlot& slot,
                                    std::optional<RequestId>& request) {
  return feed([&](engine::Engine& engine) LEASEHOLD_REQUIRES(mutex_) {
    request = engine.acquire(clock_.now(), std::move(spec));
    acquiring_.emplace(*request, &slot);
  });
}

Result<ReleaseOutcome> ClientCore::release(LeaseControl& lease, Millis keep_for, Millis timeout,
                                           const std::stop_token& stop) {
  CallersSlot<ReleaseOutcome> slot(stop);
  bool answered = false;
  Calls calls = begin(lease, keep_for, timeout, slot, answered);
  // A lease that is lost is given back too, but nobody waits for that.
  if (answered) {
    make_calls_elsewhere(std::move(calls));
  } else {
    make_calls(std::move(calls), stop);
  }
  return await(slot, lease.grant.request, stop);
}

ClientCore::Calls ClientCore::begin(LeaseControl& lease, Millis keep_for, Millis timeout,
                                    ReleaseSlot& slot, bool& answered) {
  MutexLock lock(mutex_);
  releasing_.emplace(lease.grant.request, &slot);
  engine_.release(clock_.now(), lease.grant.request, within_reason(keep_for), timeout);
  Calls calls = settle();  // first: a deadline that has passed unnoticed is a loss, and told as one
  leases_.erase(lease.grant.request);
  lease.end.end();
  answered = !releasing_.contains(lease.grant.request);
  return calls;
}

void ClientCore::cancel_all() {
  make_calls_elsewhere(feed([&](engine::Engine& engine) LEASEHOLD_REQUIRES(mutex_) {
    for (const auto& [request, slot] : acquiring_) engine.cancel(clock_.now(), request);
  }));
}

void ClientCore::cancel(const std::optional<RequestId>& request) {
  make_calls_elsewhere(feed([&](engine::Engine& engine) LEASEHOLD_REQUIRES(mutex_) {
    if (request) engine.cancel(clock_.now(), *request);
  }));
}

std::optional<Error> ClientCore::renewal_error() {
  if (auto ok = check_process(); !ok) return std::move(ok.error());
  MutexLock lock(mutex_);
  return renewal_error_;
}

void ClientCore::drop(LeaseControl& lease) {
  make_calls_elsewhere(feed([&](engine::Engine& engine) LEASEHOLD_REQUIRES(mutex_) {
    engine.drop(clock_.now(), lease.grant.request);
    leases_.erase(lease.grant.request);
    lease.end.end();
  }));
}

void ClientCore::stop_renewing(const LeaseControl& lease) {
  make_calls_elsewhere(feed([&](engine::Engine& engine) LEASEHOLD_REQUIRES(mutex_) {
    engine.stop_renewing(lease.grant.request);
  }));
}

void ClientCore::resume_renewing(const LeaseControl& lease) {
  make_calls_elsewhere(feed([&](engine::Engine& engine) LEASEHOLD_REQUIRES(mutex_) {
    engine.resume_renewing(clock_.now(), lease.grant.request);
  }));
}

// ---- watching ------------------------------------------------------------------------------

Status ClientCore::check_watch(bool has_observer, const WatchOptions& options) const {
  TRY(check_process());
  if (!has_observer) return fail(ErrorCode::invalid, "there is no observer to tell");
  const auto every = options.look_every;
  if (!every || (*every >= kSoonestLook && *every <= kLatestLook)) return {};
  return fail(ErrorCode::invalid, "look_every is " + std::to_string(every->count()) +
                                      " ms; it must be between 10 ms and 1 h");
}

Result<Watch> ClientCore::begin_watch(const Watched& what, Observer::Callback callback,
                                      const WatchOptions& options) {
  try {
    auto observer = watches_.add(what, options.look_every, std::move(callback));
    return Watch(shared_from_this(), std::move(observer));
  } catch (const std::system_error& error) {
    return fail(cannot_start(error));
  }
}

Result<Watch> ClientCore::watch(const LockName& lock, LockObserver observer,
                                const WatchOptions& options) {
  TRY(check_watch(static_cast<bool>(observer), options));
  return begin_watch(
      lock,
      [observer = std::move(observer)](const Result<std::vector<LockStatus>>& now) {
        if (!now) return observer(fail(now.error()));
        observer(now->front());
      },
      options);
}

Result<Watch> ClientCore::watch_prefix(std::string_view prefix, LocksObserver observer,
                                       const WatchOptions& options) {
  TRY(check_watch(static_cast<bool>(observer), options));
  if (!prefix.empty()) TRY(LockName::parse(prefix));
  return begin_watch(Prefix{std::string(prefix)}, std::move(observer), options);
}

void ClientCore::nudged(const RequestId& request) {
  if (make_from_line(request)) return;
  make_calls(feed([&](engine::Engine& engine)
                      LEASEHOLD_REQUIRES(mutex_) { engine.nudged(clock_.now(), request); }));
}

void ClientCore::ended(const RequestId& request) {
  make_calls(
      feed([&](engine::Engine& engine) LEASEHOLD_REQUIRES(mutex_) { engine.ended(request); }));
}

// ---- between engine and world --------------------------------------------------------------

template <class Event>
ClientCore::Calls ClientCore::feed(Event event) {
  MutexLock lock(mutex_);
  event(engine_);
  return settle();
}

ClientCore::Calls ClientCore::settle() {
  // More may come of what was not as the engine thought.
  for (engine_.take_notices(notices_); !notices_.empty(); engine_.take_notices(notices_)) {
    for (engine::Notice& notice : notices_) {
      std::visit([this](auto& told) LEASEHOLD_REQUIRES(mutex_) { tell(told); }, notice);
    }
  }
  arm_timer();
  if (engine_.settled()) settled_.notify_all();
  return engine_.take_calls();
}

void ClientCore::arm_timer() {
  auto wake = engine_.next_wake();
  if (!unasked_.empty()) {
    const BootTime over = unasked_.begin()->first.first;
    wake = std::min(wake.value_or(over), over);
  }
  if (!wake || (armed_for_ && *wake >= *armed_for_)) return;
  armed_for_ = wake;
  timer_.arm(*wake);
}

void ClientCore::on_time() {
  std::vector<std::shared_ptr<Unasked>> late;
  make_calls_elsewhere(feed([&](engine::Engine& engine) LEASEHOLD_REQUIRES(mutex_) {
    const BootTime now = clock_.now();
    armed_for_.reset();
    engine.tick(now);
    while (!unasked_.empty() && unasked_.begin()->first.first <= now) {
      if (auto question = unasked_.begin()->second.lock()) late.push_back(std::move(question));
      unasked_.erase(unasked_.begin());
    }
  }));
  for (const auto& question : late) question->time_is_over();
}

template <class Value>
Result<Value> ClientCore::await(CallersSlot<Value>& slot, const RequestId& request,
                                const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [&] { cancel(request); });
  return slot.await();
}

void ClientCore::tell(engine::AcquireEnded& notice) {
  const auto found = acquiring_.find(notice.request);
  AcquireSlot& slot = *found->second;
  acquiring_.erase(found);
  if (!notice.result) return slot.answer(fail(std::move(notice.result.error())));
  auto self = weak_from_this().lock();
  if (self == nullptr) {  // nobody is left who could hold it
    engine_.drop(clock_.now(), notice.request);
    return slot.answer(fail(client_went()));
  }
  auto control = std::make_shared<LeaseControl>(std::move(self), std::move(*notice.result));
  leases_.emplace(notice.request, control.get());
  slot.answer(std::move(control));
}

void ClientCore::tell(engine::ReleaseEnded& notice) {
  const auto found = releasing_.find(notice.request);
  ReleaseSlot& slot = *found->second;
  releasing_.erase(found);
  slot.answer(std::move(notice.result));
}

void ClientCore::tell(engine::LeaseChanged& notice) {
  const auto found = leases_.find(notice.request);
  if (found == leases_.end()) return;
  LeaseControl& lease = *found->second;
  if (notice.state != LeaseState::lost) {
    if (!lease.end.move(notice.deadline)) return engine_.ended(notice.request);
    lease.uncertain = notice.state == LeaseState::uncertain;
    return;
  }
  lease.end.end();
  callbacks_.post([lost = lease.lost]() mutable { lost.request_stop(); });
}

void ClientCore::make_calls(Calls calls, const std::stop_token& stop) {
  for (engine::StoreCall& call : calls) {
    std::visit([&](auto& send) { make(send, stop); }, call);
  }
}

TaskThreads& ClientCore::threads_for(const engine::StoreCall& call) {
  if (is_async_ && std::holds_alternative<engine::SendAcquire>(call)) return asking_;
  const auto* renew = std::get_if<engine::SendRenew>(&call);
  return renew != nullptr && renew->lane ? renewals_[*renew->lane] : calls_;
}

void ClientCore::make_calls_elsewhere(Calls calls) {
  for (engine::StoreCall& call : calls) {
    TaskThreads& threads = threads_for(call);
    if (auto* acquire = std::get_if<engine::SendAcquire>(&call)) {
      stand_in_line(std::move(*acquire), threads);
      continue;
    }
    threads.post([this, moved = std::make_shared<engine::StoreCall>(std::move(call))] {
      std::visit([&](auto& send) { make(send, {}); }, *moved);
    });
  }
}

void ClientCore::stand_in_line(engine::SendAcquire send, TaskThreads& threads) {
  const RequestId request = send.call.request;
  {
    MutexLock lock(mutex_);
    in_line_.emplace(request, std::move(send));
  }
  threads.post([this, request] { make_from_line(request); });
}

bool ClientCore::make_from_line(const RequestId& request) {
  std::optional<engine::SendAcquire> send;
  std::optional<std::stop_token> stop;
  {
    MutexLock lock(mutex_);
    const auto stood = in_line_.find(request);
    if (stood == in_line_.end()) return false;
    send = std::move(stood->second);
    in_line_.erase(stood);
    const auto waits = acquiring_.find(request);
    if (waits != acquiring_.end()) stop = waits->second->stop;
  }
  if (stop) {
    make(*send, *stop);
  } else {
    replied(request,
            Result<AcquireReply>(fail(ErrorCode::cancelled, "nobody waits for it any more")));
  }
  return true;
}

void ClientCore::follow_up(Calls calls, const std::stop_token& stop) {
  if (calls.empty()) return;
  Calls withdrawals;
  Calls others;
  for (engine::StoreCall& call : calls) {
    const bool withdraws = std::holds_alternative<engine::SendRelease>(call);
    (withdraws ? withdrawals : others).emplace_back(std::move(call));
  }
  make_calls_elsewhere(std::move(withdrawals));
  make_calls(std::move(others), stop);
}

// The completion of a call for one request: so small that a std::function keeps it in itself. What
// a store answers besides, against its contract, is nobody's.
template <class Reply>
struct ClientCore::OneAnswer {
  ClientCore* core;
  const RequestId* asker;

  void operator()(Result<Reply> reply) {
    const RequestId* once = std::exchange(asker, nullptr);
    if (once != nullptr) core->replied(*once, std::move(reply));
  }
};

// A store must not throw; if it does, whether the call was done is not known.
template <class Replied, class Call>
void ClientCore::guarded(Replied replied, Call call) {
  try {
    call();
  } catch (const std::exception& thrown) {
    replied(fail(ErrorCode::outcome_unknown, "the store failed unexpectedly", thrown.what()));
  }
}

void ClientCore::make(engine::SendAcquire& send, const std::stop_token& stop) {
  const auto failed = [this, request = send.call.request](Result<AcquireReply> failure) {
    replied(request, std::move(failure));
  };
  guarded(failed, [&] {
    store_->acquire(std::move(send.call), {send.deadline, stop},
                    OneAnswer<AcquireReply>{this, send.asker});
  });
}

void ClientCore::replied(RequestId request, Result<AcquireReply> reply) {
  Calls calls;
  std::stop_token stop;
  {
    MutexLock lock(mutex_);
    engine_.acquire_replied(clock_.now(), request, std::move(reply));
    calls = settle();
    if (!calls.empty()) stop = stop_of(request);
  }
  follow_up(std::move(calls), stop);
}

std::stop_token ClientCore::stop_of(const RequestId& request) {
  const auto waits = acquiring_.find(request);
  return waits == acquiring_.end() ? std::stop_token() : waits->second->stop;
}

void ClientCore::call_off(engine::SendRenew& send) {
  MutexLock lock(mutex_);
  std::erase_if(send.calls, [this](const RenewCall& call) LEASEHOLD_REQUIRES(mutex_) {
    return engine_.call_off_renewal(call.request);
  });
}

void ClientCore::make(engine::SendRenew& send, const std::stop_token& stop) {
  call_off(send);
  if (send.calls.empty()) return;
  std::vector<RequestId> requests;
  requests.reserve(send.calls.size());
  for (const RenewCall& call : send.calls) requests.push_back(call.request);
  const auto replied = [this, requests = std::move(requests),
                        stop](const Result<std::vector<RenewReply>>& replies) {
    follow_up(feed([&](engine::Engine& engine) LEASEHOLD_REQUIRES(mutex_) {
                renewal_error_ = replies ? std::nullopt : std::optional(replies.error());
                engine.renew_replied(clock_.now(), requests, replies);
              }),
              stop);
  };
  guarded(replied, [&] {
    store_->renew(std::move(send.calls), {send.deadline, stop, /*urgent=*/true}, replied);
  });
}

void ClientCore::make(engine::SendRelease& send, const std::stop_token& stop) {
  const auto failed = [this, request = send.call.request](Result<ReleaseReply> failure) {
    replied(request, std::move(failure));
  };
  guarded(failed, [&] {
    store_->release(std::move(send.call), {send.deadline, stop},
                    OneAnswer<ReleaseReply>{this, send.asker});
  });
}

void ClientCore::replied(RequestId request, Result<ReleaseReply> reply) {
  follow_up(feed([&](engine::Engine& engine) LEASEHOLD_REQUIRES(mutex_) {
              engine.release_replied(clock_.now(), request, reply);
            }),
            {});
}

}  // namespace leasehold::detail
