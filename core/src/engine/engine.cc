#include "engine/engine.h"

#include <algorithm>
#include <map>

#include "engine/timing.h"
#include "kit/text/visible_text.h"

namespace leasehold::engine {
namespace {

constexpr std::size_t kMaxRenewalBatch = 1000;
constexpr Duration kLongestSlack = std::chrono::seconds(1);
constexpr Millis kBackgroundReleaseTimeout = std::chrono::seconds(5);

// Whatever a store says.
constexpr Millis kSoonestRecheck{1};
constexpr Millis kLatestRecheck = std::chrono::seconds(10);

bool worth_retrying(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::outcome_unknown;
}

std::string words_for(const LockName& lock) {
  return "lock " + kit::in_quotes(lock.str());
}

// A store tells one name, and not whether that one holds the lock or waits for it before others.
Error not_free(const LockName& lock, const std::string& ahead) {
  return Error(ErrorCode::busy, words_for(lock) + " is not free" +
                                    (ahead.empty() ? "" : ": " + ahead + " holds it or is next"));
}

std::string in_words(Millis span) {
  if (span.count() % 1000 == 0) return std::to_string(span.count() / 1000) + " s";
  return std::to_string(span.count()) + " ms";
}

Error timed_out(const LockName& lock, Millis wait, const std::string& ahead) {
  return Error(ErrorCode::timeout,
               words_for(lock) + " could not be had within " + in_words(wait) +
                   (ahead.empty() ? "" : "; " + ahead + " holds it or is next"));
}

}  // namespace

Error Engine::unknown(const Acquisition& it, const std::string& what) const {
  return error_at(store_, Error(ErrorCode::outcome_unknown,
                                "the store did not say whether " + words_for(it.spec.lock) + what,
                                it.last_error ? to_string(error_at("", *it.last_error)) : ""));
}

// The last that was heard is that somebody else was in the way; that may be long ago.
Error Engine::cut_off(const Acquisition& it) const {
  return error_at(
      store_,
      Error(ErrorCode::unavailable,
            "the store could not be reached any more while waiting for " + words_for(it.spec.lock) +
                (it.ahead.empty() ? "" : "; at last " + it.ahead + " held it or was next"),
            it.last_error->message));
}

Error Engine::unknown_grant(const Acquisition& it) const {
  return unknown(it, " was granted; if it was, it is being given back in the background");
}

Error Engine::unknown_release(const Acquisition& it) const {
  const bool kept_longer = it.grant && it.keep_for > it.grant->ttl;
  return unknown(
      it, kept_longer ? " was released; it is free after the time it was to be kept at the latest"
                      : " was released; it is free after its TTL at the latest");
}

Engine::Acquisition* Engine::find(const RequestId& request) {
  const auto found = acquisitions_.find(request);
  return found == acquisitions_.end() ? nullptr : &found->second;
}

Engine::Acquisition* Engine::find_held(const RequestId& request) {
  Acquisition* it = find(request);
  const bool held = it != nullptr && it->phase == Phase::holding && it->state != LeaseState::lost;
  return held ? it : nullptr;
}

void Engine::set_phase(Acquisition& it, Phase phase) {
  if (it.phase == Phase::holding) ++unsettled_;
  if (phase == Phase::holding) --unsettled_;
  it.phase = phase;
}

void Engine::forget(Acquisition& it) {
  if (it.phase != Phase::holding) --unsettled_;
  if (it.wake) wakes_.erase({*it.wake, it.request});
  acquisitions_.erase(RequestId(it.request));
}

// ---- time ----------------------------------------------------------------------------------

std::optional<BootTime> Engine::wake_of(const Acquisition& it) const {
  switch (it.phase) {
    case Phase::acquiring:
      return it.call_in_flight ? it.give_up_at : std::min(it.try_at, it.give_up_at);
    case Phase::confirming:
      return it.renew_in_flight ? it.give_up_at : std::min(it.try_at, it.give_up_at);
    case Phase::holding:
      if (it.state == LeaseState::lost) return std::nullopt;
      if (it.renew_in_flight || !it.renews) return it.grant->deadline;
      return std::min(it.renew_at, it.grant->deadline);
    case Phase::leaving:
      break;
  }
  const bool waits_to_retry = !it.release_in_flight && !it.call_in_flight;
  if (waits_to_retry && it.caller_waits) return std::min(it.try_at, it.answer_by);
  if (waits_to_retry) return it.try_at;
  if (it.caller_waits) return it.answer_by;
  return std::nullopt;
}

// An entry may be early, never late: most waits end long before their time, and moving the entry
// each time would be a good part of what a quick lease costs.
void Engine::reschedule(Acquisition& it) {
  const auto wake = wake_of(it);
  if (wake && it.wake && *it.wake <= *wake) return;
  set_wake(it, wake);
}

void Engine::set_wake(Acquisition& it, std::optional<BootTime> wake) {
  if (it.wake) wakes_.erase({*it.wake, it.request});
  if (wake) wakes_.insert({*wake, it.request});
  it.wake = wake;
}

std::optional<BootTime> Engine::next_wake() const {
  if (wakes_.empty()) return std::nullopt;
  return wakes_.begin()->first;
}

void Engine::tick(BootTime now) {
  while (!wakes_.empty() && wakes_.begin()->first <= now) {
    Acquisition& it = *find(wakes_.begin()->second);
    const auto wake = wake_of(it);
    const bool early = !wake || *wake > now;
    const bool renewal_due = it.phase == Phase::holding && now < it.grant->deadline;
    if (early) {
      set_wake(it, wake);
    } else if (renewal_due) {
      send_due_renewals(now);
    } else {
      on_wake(now, it);
    }
  }
}

void Engine::on_wake(BootTime now, Acquisition& it) {
  switch (it.phase) {
    case Phase::acquiring:
      if (now >= it.give_up_at) return give_up(now, it);
      return send_acquire(now, it);
    case Phase::confirming:
      if (now >= it.give_up_at) return give_up(now, it);
      return confirm(now, it);
    case Phase::holding:
      return change(it, LeaseState::lost);
    case Phase::leaving:
      if (it.caller_waits && now >= it.answer_by) {
        const bool unknown = it.release_in_flight || it.release_ambiguous || !it.last_error;
        answer_release(it, fail(unknown ? unknown_release(it) : *it.last_error));
        return reschedule(it);
      }
      return send_release(now, it);
  }
}

// ---- acquiring -----------------------------------------------------------------------------

RequestId Engine::acquire(BootTime now, AcquireSpec spec) {
  const RequestId request = RequestId::random(random_);
  Acquisition& it = acquisitions_.try_emplace(request, request, std::move(spec), now).first->second;
  ++unsettled_;
  it.give_up_at = now + std::max(it.spec.wait, it.spec.store_timeout);
  send_acquire(now, it);
  return request;
}

// A caller may be in a call of its own acquire, so that none of them may last longer.
BootTime Engine::latest_answer(const Acquisition& it) {
  return it.started + it.spec.wait + it.spec.store_timeout;
}

void Engine::send_acquire(BootTime now, Acquisition& it) {
  ++it.attempts;
  it.acquire_sent = now;
  it.call_in_flight = true;
  it.nudged_meanwhile = false;
  effects_.calls.emplace_back(
      SendAcquire{AcquireCall{.lock = it.spec.lock,
                              .request = it.request,
                              .owner = it.spec.owner,
                              .ttl = it.spec.ttl,
                              .queue = store_queues_ && it.spec.wait > Millis(0),
                              .mode = it.spec.mode,
                              .note = it.spec.note},
                  answer_wanted_by(now, std::min(now + it.spec.store_timeout, latest_answer(it))),
                  &it.request});
  reschedule(it);
}

void Engine::acquire_replied(BootTime now, const RequestId& request, Result<AcquireReply> reply) {
  Acquisition* found = find(request);
  if (found == nullptr || !found->call_in_flight) return;
  Acquisition& it = *found;
  it.call_in_flight = false;

  const bool was_not_done = !reply && reply.error().code != ErrorCode::outcome_unknown;
  if (!was_not_done && !(reply && std::holds_alternative<Busy>(*reply))) it.traces = true;
  if (it.phase == Phase::leaving) return leave(now, it);

  if (!reply) return acquire_failed(now, it, std::move(reply.error()));
  it.failures = 0;
  if (const auto* grant = std::get_if<Granted>(&*reply)) return granted(now, it, *grant);

  it.answered = true;
  it.granted_after = it.acquire_sent;
  it.renewed.reset();
  if (auto* busy = std::get_if<Busy>(&*reply)) {
    it.ahead = std::move(busy->ahead);
    return wait_on(now, it, now + busy_poll(it.attempts - 1, jitter_));
  }
  auto& queued = std::get<Queued>(*reply);
  it.ahead = std::move(queued.ahead);
  if (it.nudged_meanwhile && now < it.started + it.spec.wait) return send_acquire(now, it);
  wait_on(now, it, now + std::clamp(queued.recheck_after, kSoonestRecheck, kLatestRecheck));
}

void Engine::acquire_failed(BootTime now, Acquisition& it, Error error) {
  const bool told_at_once = error.code == ErrorCode::unavailable && it.spec.wait == Millis(0);
  if (told_at_once && it.traces) return end_acquire(now, it, unknown_grant(it));
  if (told_at_once || !worth_retrying(error.code)) return end_acquire(now, it, std::move(error));
  it.last_error = std::move(error);
  it.try_at = now + store_retry(it.failures++, jitter_);
  // One more attempt would be in flight at the end, and nobody would know what came of it.
  const bool is_last = it.try_at >= answer_wanted_by(it.started, it.give_up_at);
  if (is_last && !it.answered && !it.traces) return end_acquire(now, it, *it.last_error);
  reschedule(it);
}

void Engine::wait_on(BootTime now, Acquisition& it, BootTime next_try) {
  if (it.spec.wait == Millis(0)) return end_acquire(now, it, not_free(it.spec.lock, it.ahead));
  it.give_up_at = it.started + it.spec.wait;
  it.try_at = next_try;
  reschedule(it);
}

void Engine::give_up(BootTime now, Acquisition& it) {
  if (it.phase == Phase::confirming) return end_acquire(now, it, unknown_grant(it));
  if (it.answered && it.failures == 0) {
    return end_acquire(now, it, timed_out(it.spec.lock, it.spec.wait, it.ahead));
  }
  if (it.answered) return end_acquire(now, it, cut_off(it));
  if (it.call_in_flight || it.traces || !it.last_error) {
    return end_acquire(now, it, unknown_grant(it));
  }
  end_acquire(now, it, *it.last_error);
}

void Engine::cancel(BootTime now, const RequestId& request) {
  Acquisition* it = find(request);
  if (it == nullptr || it->phase == Phase::holding) return;
  if (it->phase == Phase::leaving) {
    return answer_release(
        *it, fail(ErrorCode::cancelled, "releasing " + words_for(it->spec.lock) +
                                            " was stopped; it goes on in the background"));
  }
  end_acquire(
      now, *it,
      Error(ErrorCode::cancelled, "waiting for " + words_for(it->spec.lock) + " was stopped"));
}

void Engine::end_acquire(BootTime now, Acquisition& it, Error error) {
  effects_.notices.emplace_back(AcquireEnded{it.request, fail(std::move(error))});
  leave(now, it);
}

void Engine::granted(BootTime now, Acquisition& it, const Granted& granted) {
  const BootTime deadline = it.acquire_sent + granted.ttl - drift_allowance(granted.ttl);
  it.grant = Grant{it.request,  it.spec.lock, granted.token, granted.store,
                   granted.ttl, deadline,     it.spec.mode,  granted.slot};
  const bool made_by_this_call = granted.fresh || it.attempts == 1;
  if (made_by_this_call) it.granted_after = it.acquire_sent;
  if (made_by_this_call && deadline - now >= granted.ttl / 2) return hold(it, it.acquire_sent);
  const auto renewed = std::exchange(it.renewed, {});
  if (!made_by_this_call && renewed && now < end_of_grant(*renewed, it)) return hold(it, *renewed);
  // Bounded: a grant that is over whenever its confirmation comes must not go round for ever.
  it.give_up_at = std::max(it.give_up_at, std::min(now + it.spec.store_timeout, latest_answer(it)));
  confirm(now, it);
}

// ---- holding -------------------------------------------------------------------------------

void Engine::confirm(BootTime now, Acquisition& it) {
  set_phase(it, Phase::confirming);
  it.renew_in_flight = true;
  it.renew_sent = now;
  effects_.calls.emplace_back(
      SendRenew{{RenewCall{it.spec.lock, it.request, it.spec.ttl}},
                answer_wanted_by(now, std::min(now + it.spec.store_timeout, it.give_up_at)),
                {}});
  reschedule(it);
}

BootTime Engine::end_of_grant(BootTime counted_from, const Acquisition& it) {
  return counted_from + it.grant->ttl - drift_allowance(it.grant->ttl);
}

// If the grant that was told may be over, a late acquire of the same request may have been granted
// since, and that is what was renewed: with another token, and perhaps another slot. The store is
// asked which it is.
void Engine::confirmed(BootTime now, Acquisition& it) {
  if (now < end_of_grant(it.granted_after, it)) return hold(it, it.renew_sent);
  set_phase(it, Phase::acquiring);
  it.failures = 0;
  it.renewed = it.renew_sent;
  send_acquire(now, it);
}

void Engine::hold(Acquisition& it, BootTime counted_from) {
  it.grant->deadline = end_of_grant(counted_from, it);
  it.renew_at = counted_from + jittered(renewal_interval(it.grant->ttl), jitter_);
  it.failures = 0;
  set_phase(it, Phase::holding);
  effects_.notices.emplace_back(AcquireEnded{it.request, *it.grant});
  reschedule(it);
}

void Engine::renew_replied(BootTime now, std::span<const RequestId> requests,
                           const Result<std::vector<RenewReply>>& replies) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Acquisition* it = find(requests[i]);
    if (it == nullptr || !it->renew_in_flight) continue;
    it->renew_in_flight = false;
    const bool answered = replies && i < replies->size() && (*replies)[i] != RenewReply::unknown;
    if (it->phase == Phase::leaving) continue;
    if (!answered && !it->renews) continue;  // nothing is retried; the deadline stands
    if (!answered) {
      renewal_failed(now, *it);
    } else if ((*replies)[i] == RenewReply::renewed) {
      renewed(now, *it);
    } else if (it->phase == Phase::confirming) {
      it->failures = 0;
      set_phase(*it, Phase::acquiring);
      send_acquire(now, *it);
    } else {
      change(*it, LeaseState::lost);
    }
  }
}

void Engine::renewed(BootTime now, Acquisition& it) {
  if (it.phase == Phase::holding && it.state == LeaseState::lost) return;  // told; never taken back
  const BootTime deadline = end_of_grant(it.renew_sent, it);
  if (now >= deadline) return renewal_failed(now, it);
  if (it.phase == Phase::confirming) return confirmed(now, it);
  const bool callers_saw_it_end = now >= it.grant->deadline;
  if (callers_saw_it_end) return change(it, LeaseState::lost);
  it.grant->deadline = std::max(it.grant->deadline, deadline);
  it.renew_at = it.renew_sent + jittered(renewal_interval(it.grant->ttl), jitter_);
  it.failures = 0;
  change(it, LeaseState::held);
}

void Engine::renewal_failed(BootTime now, Acquisition& it) {
  const BootTime retry = now + renewal_retry(it.failures++, it.grant->ttl, jitter_);
  if (it.phase == Phase::confirming) {
    it.try_at = retry;
    return reschedule(it);
  }
  it.renew_at = retry;
  if (it.state != LeaseState::lost) {
    change(it, now >= it.grant->deadline ? LeaseState::lost : LeaseState::uncertain);
  }
}

void Engine::send_due_renewals(BootTime now) {
  std::vector<Acquisition*> due;
  for (const auto& [wake, request] : wakes_) {
    if (wake > now + kLongestSlack) break;
    Acquisition& it = *find(request);
    const bool waits_to_renew = it.phase == Phase::holding && !it.renew_in_flight && it.renews &&
                                it.renew_at <= it.grant->deadline && now < it.grant->deadline;
    if (!waits_to_renew || it.state == LeaseState::lost) continue;
    if (it.renew_at <= now + renewal_slack(it.grant->ttl)) due.push_back(&it);
  }
  std::map<Ttl, std::vector<Acquisition*>> by_ttl;  // a short TTL must not hurry the others
  for (Acquisition* it : due) by_ttl[it->spec.ttl].push_back(it);
  for (const auto& [ttl, group] : by_ttl) {
    for (std::size_t at = 0; at < group.size(); at += kMaxRenewalBatch) {
      const std::size_t count = std::min(kMaxRenewalBatch, group.size() - at);
      send_renewals(now, std::span(group).subspan(at, count));
    }
  }
}

void Engine::send_renewals(BootTime now, std::span<Acquisition* const> due) {
  SendRenew send;
  send.lane = renewal_lane(due.front()->spec.ttl.length());
  send.deadline = now + renewal_interval(due.front()->grant->ttl);
  for (Acquisition* it : due) {
    it->renew_in_flight = true;
    it->renew_sent = now;
    send.deadline = std::min(send.deadline, it->grant->deadline);
    send.calls.push_back(RenewCall{it->spec.lock, it->request, it->spec.ttl});
    set_wake(*it, wake_of(*it));  // else each would wake once more, by itself
  }
  effects_.calls.emplace_back(std::move(send));
}

void Engine::stop_renewing(const RequestId& request) {
  Acquisition* it = find_held(request);
  if (it == nullptr) return;
  it->renews = false;
  reschedule(*it);
}

void Engine::resume_renewing(BootTime now, const RequestId& request) {
  Acquisition* it = find_held(request);
  if (it == nullptr || it->renews) return;
  it->renews = true;
  it->renew_at = now;
  reschedule(*it);
}

bool Engine::call_off_renewal(const RequestId& request) {
  Acquisition* it = find_held(request);
  if (it == nullptr || it->renews) return false;
  it->renew_in_flight = false;
  return true;
}

void Engine::change(Acquisition& it, LeaseState state) {
  it.state = state;
  effects_.notices.emplace_back(LeaseChanged{it.request, state, it.grant->deadline});
  reschedule(it);
}

// ---- what the store tells unasked ----------------------------------------------------------

void Engine::nudged(BootTime now, const RequestId& request) {
  Acquisition* it = find(request);
  if (it == nullptr || it->phase != Phase::acquiring) return;
  if (it->call_in_flight) {
    it->nudged_meanwhile = true;
    return;
  }
  send_acquire(now, *it);
}

void Engine::ended(const RequestId& request) {
  if (Acquisition* it = find_held(request)) change(*it, LeaseState::lost);
}

// ---- leaving -------------------------------------------------------------------------------

void Engine::release(BootTime now, const RequestId& request, Millis keep_for, Millis timeout) {
  Acquisition* found = find(request);
  if (found == nullptr || found->phase != Phase::holding) return;
  Acquisition& it = *found;
  if (it.state != LeaseState::lost && now >= it.grant->deadline) change(it, LeaseState::lost);
  it.caller_waits = true;
  it.answer_by = now + timeout;
  if (it.state == LeaseState::lost) {
    answer_release(it, ReleaseOutcome::too_late);
  } else {
    it.keep_for = keep_for;
  }
  leave(now, it);
}

void Engine::drop(BootTime now, const RequestId& request) {
  Acquisition* it = find(request);
  if (it == nullptr || it->phase != Phase::holding) return;
  leave(now, *it);
}

// A release must not overtake the acquire it takes back, so that one is waited for.
void Engine::leave(BootTime now, Acquisition& it) {
  set_phase(it, Phase::leaving);
  it.failures = 0;
  if (it.call_in_flight) return reschedule(it);
  if (!it.traces) return forget(it);
  send_release(now, it);
}

void Engine::send_release(BootTime now, Acquisition& it) {
  it.release_in_flight = true;
  effects_.calls.emplace_back(SendRelease{
      ReleaseCall{it.spec.lock, it.request, it.keep_for},
      it.caller_waits ? answer_wanted_by(now, it.answer_by) : now + kBackgroundReleaseTimeout,
      &it.request});
  reschedule(it);
}

void Engine::release_replied(BootTime now, const RequestId& request,
                             const Result<ReleaseReply>& reply) {
  Acquisition* found = find(request);
  if (found == nullptr || !found->release_in_flight) return;
  Acquisition& it = *found;
  it.release_in_flight = false;
  if (reply) {
    if (*reply == ReleaseReply::released) {
      answer_release(it, ReleaseOutcome::released);
    } else if (it.release_ambiguous) {
      answer_release(it, fail(unknown_release(it)));
    } else {
      answer_release(it, ReleaseOutcome::too_late);
    }
    return forget(it);
  }
  const bool stopped = reply.error().code == ErrorCode::cancelled;
  if (!stopped && !worth_retrying(reply.error().code)) {
    answer_release(it, fail(reply.error()));
    return forget(it);
  }
  if (reply.error().code == ErrorCode::outcome_unknown) it.release_ambiguous = true;
  it.last_error = reply.error();
  it.try_at = now + store_retry(it.failures++, jitter_);
  reschedule(it);
}

void Engine::answer_release(Acquisition& it, Result<ReleaseOutcome> result) {
  if (!it.caller_waits) return;
  it.caller_waits = false;
  effects_.notices.emplace_back(ReleaseEnded{it.request, std::move(result)});
}

}  // namespace leasehold::engine
