// Messages: how they travel, what they do where they arrive.
#include "world.h"

namespace leasehold::simulation {
namespace {

// In place of the number of a copy, in an event that answers a call:
constexpr std::uint32_t kRefused = 2;
constexpr std::uint32_t kBroken = 3;
constexpr Time kVisitTimeout = 300 * kMillisecond;

}  // namespace

Time World::delay() {
  if (!storm_) return chance_.between(100'000, 3 * kMillisecond);
  const std::uint64_t kind = chance_.below(100);
  if (kind < 70) return chance_.between(100'000, 5 * kMillisecond);
  if (kind < 92)
    return chance_.between(100'000, std::min(settings_.most_delay, 300 * kMillisecond));
  if (kind < 99) return chance_.between(100'000, std::min(settings_.most_delay, 3 * kSecond));
  return chance_.between(100'000, settings_.most_delay);
}

Time World::on_grid(Time time) const {
  return (time + settings_.grid - 1) / settings_.grid * settings_.grid;
}

bool World::message_lost() {
  return storm_ && chance_.per_mille(settings_.lost);
}

// ---- calls to the store --------------------------------------------------------------------

void World::send(Client& client, Call&& sent, BootTime deadline) {
  const std::uint32_t at = calls_.take();
  Call& call = calls_.items[at];
  call = std::move(sent);
  call.client = number(client);
  call.life = client.life;
  call.order = ++sent_;

  Time timeout = std::max(client.clock.when(deadline), now_ + 1);
  if (storm_ && chance_.per_mille(settings_.timers_late)) {
    timeout += chance_.between(0, 2 * kSecond);
  }
  plan(timeout, EventKind::call_times_out, call.client, at);
  ++call.events;
  if (settings_.together) return gather(client, at);
  depart(client, at);
}

void World::depart(Client& client, std::uint32_t at) {
  Call& call = calls_.items[at];
  if (storm_ && chance_.per_mille(settings_.unavailable)) {
    outcome_.faults.add(Fault::unavailable);
    plan(now_ + delay(), EventKind::reply_arrives, call.client, at, kRefused);
    ++call.events;
    return;
  }
  if (client.cannot_send || message_lost()) {
    outcome_.faults.add(Fault::request_lost);
    if (connection_breaks(call, at)) ++call.events;
    return;
  }
  const bool late = call.confirms && storm_ && chance_.per_mille(settings_.late_confirms);
  if (late) outcome_.faults.add(Fault::late_confirm);
  call.repeated = storm_ && chance_.per_mille(settings_.repeated);
  for (std::uint32_t copy = 0; copy < (call.repeated ? 2u : 1u); ++copy) {
    const Time span = late ? until_given_up(client, call) : delay();
    if (span > kSecond) outcome_.faults.add(Fault::delayed);
    if (copy == 1) outcome_.faults.add(Fault::duplicate);
    plan(on_grid(now_ + span), EventKind::call_arrives, call.client, at, copy);
    ++call.events;
  }
}

// As long as its caller waits, a little more or less.
Time World::until_given_up(const Client& client, const Call& call) {
  const Time limit = client.clock.when(acquisition(call.renewals.front().id).answer_by);
  return std::max<Time>(1, limit - now_ + chance_.between(-20, 20) * kMillisecond);
}

// With the connection the reply is lost, and the caller sees that at once: it knows as little as
// after a timeout, but earlier.
bool World::connection_breaks(const Call& call, std::uint32_t at) {
  if (!chance_.one_in(2)) return false;
  outcome_.faults.add(Fault::connection_broken);
  plan(now_ + delay(), EventKind::reply_arrives, call.client, at, kBroken);
  return true;
}

void World::call_arrives(const Event& event) {
  if (store_paused_) {
    at_the_paused_store_.push_back(event);
    return;
  }
  Call& call = calls_.items[event.what];
  Client& client = clients_[call.client];
  if (store_down_) {
    const bool refused = !call.repeated && chance_.one_in(2);
    if (refused) {
      outcome_.faults.add(Fault::unavailable);
      plan(now_ + delay(), EventKind::reply_arrives, call.client, event.what, kRefused);
      return;
    }
    outcome_.faults.add(Fault::request_lost);
    calls_.drop_event(event.what);
    return;
  }
  if (call.order < client.newest_arrival) outcome_.faults.add(Fault::reordered);
  client.newest_arrival = std::max(client.newest_arrival, call.order);

  execute(call, call.replies[event.detail]);
  if (options_.mutation == Mutation::neighbours_swap_answers && call.neighbour != 0) {
    std::swap(call.replies[0], calls_.items[call.neighbour].replies[0]);
  }
  tell_what_the_store_tells();
  const bool crashes = storm_ && settings_.store_crashes > 0 && chance_.one_in(3000);
  if (crashes) {
    outcome_.faults.add(Fault::crashed_after_commit);
    crash_store();
  }
  if (crashes || client.cannot_receive || (call.batch ? call.reply_lost : message_lost())) {
    outcome_.faults.add(Fault::reply_lost);
    if (!connection_breaks(call, event.what)) calls_.drop_event(event.what);
    return;
  }
  plan(now_ + delay(), EventKind::reply_arrives, call.client, event.what, event.detail);
}

void World::execute(Call& call, CallReply& reply) {
  const Client& client = clients_[call.client];
  const bool late = call.answered || !client.up() || client.life != call.life;
  if (late) outcome_.faults.add(Fault::executed_late);
  switch (call.kind) {
    case Call::Kind::acquire:
      reply.acquired = store_.acquire(now_, {call.lock, call.mode, call.on_wire, call.client,
                                             in_time(call.ttl), call.queue, late || call.was_busy});
      call.was_busy |= reply.acquired.kind == AcquireAnswer::Kind::busy;
      break;
    case Call::Kind::renew:
      reply.renewed.clear();
      for (const Renewal& each : call.renewals) {
        const bool done = store_.renew(now_, each.lock, each.on_wire, each.ttl);
        reply.renewed.push_back(done ? RenewReply::renewed : RenewReply::gone);
      }
      break;
    case Call::Kind::release:
      // Both copies are one call: what the first of them did is what the call did.
      call.released |= store_.release(now_, call.lock, call.on_wire, call.keep_for);
      reply.released = call.released;
      for (const std::uint32_t lock : store_.take_deferred()) {
        plan(now_ + delay(), EventKind::store_deletes, 0, lock);
      }
      break;
  }
}

// The first answer to a call, of whatever kind, is the only one. False: this is not it.
bool World::answer_call(const Event& event) {
  Client& client = clients_[event.client];
  Call& call = calls_.items[event.what];
  const bool first = !std::exchange(call.answered, true);
  const bool matters = first && !call.abandoned && client.up() && client.life == call.life;
  const bool no_word = event.kind == EventKind::call_times_out || event.detail == kBroken;
  const bool is_not_sent = std::exchange(call.gathered, false);
  if (matters && is_not_sent) {
    outcome_.faults.add(Fault::left_the_line);
    deliver(client, call, nullptr, ErrorCode::unavailable);
  } else if (matters && no_word) {
    deliver(client, call, nullptr, ErrorCode::outcome_unknown);
  } else if (matters && event.detail == kRefused) {
    deliver(client, call, nullptr, ErrorCode::unavailable);
  } else if (matters) {
    deliver(client, call, &call.replies[event.detail], ErrorCode::internal);
  }
  if (first && client.out == event.what) take_gathered(client);
  calls_.drop_event(event.what);
  return matters;
}

void World::deliver(Client& client, const Call& call, const CallReply* reply, ErrorCode error) {
  const BootTime now = local(client);
  if (call.kind == Call::Kind::renew) {
    std::vector<RequestId> ids;
    for (const Renewal& each : call.renewals) ids.push_back(each.id);
    if (reply == nullptr) {
      client.engine->renew_replied(now, ids, fail(error, "no reply"));
      return settle(client);
    }
    client.engine->renew_replied(now, ids, reply->renewed);
    settle(client);
    if (options_.mutation != Mutation::lost_lease_comes_back) return;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (reply->renewed[i] == RenewReply::renewed && acquisition(ids[i]).told_lost) {
        lease_changed(client, {ids[i], LeaseState::held, now + std::chrono::milliseconds(50)});
      }
    }
    return;
  }
  Acquisition& it = acquisitions_[call.request];
  if (call.kind == Call::Kind::release) {
    it.release_in_flight = false;
    if (reply == nullptr) {
      client.engine->release_replied(now, it.id, fail(error, "no reply"));
    } else {
      client.engine->release_replied(
          now, it.id, reply->released ? ReleaseReply::released : ReleaseReply::not_held);
    }
    return settle(client);
  }
  it.acquire_in_flight = false;
  if (reply == nullptr) {
    if (error == ErrorCode::outcome_unknown) it.reply_was_lost = true;
    client.engine->acquire_replied(now, it.id, fail(error, "no reply"));
    return settle(client);
  }
  const AcquireAnswer& answer = reply->acquired;
  AcquireReply told = Busy{};
  if (answer.kind == AcquireAnswer::Kind::granted) {
    std::int64_t token = answer.token;
    if (options_.mutation == Mutation::token_of_32_bits)
      token = std::max<std::int64_t>(1, token & 0xffffffff);
    told =
        Granted{TokenNumber::of(token).value(), store_.id(), call.ttl, answer.fresh, answer.slot};
  } else if (answer.kind == AcquireAnswer::Kind::queued) {
    told = Queued{Millis(answer.recheck_after / kMillisecond), {}};
  }
  client.engine->acquire_replied(now, it.id, std::move(told));
  settle(client);
}

void World::tell_what_the_store_tells() {
  for (const Told& told : store_.told()) {
    if (message_lost() || clients_[told.client].cannot_receive) {
      outcome_.faults.add(Fault::nudge_lost);
      continue;
    }
    plan(now_ + delay(), told.nudge ? EventKind::nudge_arrives : EventKind::ended_arrives,
         told.client, told.request);
  }
  store_.told().clear();
}

// ---- accesses to the resource --------------------------------------------------------------

void World::start_visit(Client& client, std::uint32_t index) {
  Worker& worker = client.workers[index];
  const std::uint32_t at = trips_.take();
  Trip& trip = trips_.items[at];
  trip = Trip{};
  trip.client = number(client);
  trip.life = client.life;
  trip.worker = index;
  Acquisition& it = acquisitions_[worker.request];
  trip.visit = {worker.writes,
                {worker.lock, worker.slot},
                worker.mode,
                worker.token,
                on_wire(it, worker.request),
                store_.ref(),
                worker.writes ? worker.sequence : 0,
                worker.writes ? worker.next : 0,
                worker.writes ? worker.seen : 0};
  worker.visit = at;
  note(client, drill::Kind::invoke,
       worker.writes ? drill::Operation::write : drill::Operation::read, worker);
  plan(now_ + kVisitTimeout, EventKind::access_times_out, trip.client, at);
  ++trip.events;
  if (message_lost()) {
    outcome_.faults.add(Fault::request_lost);
    return;
  }
  const bool repeated = storm_ && chance_.per_mille(settings_.repeated);
  for (std::uint32_t copy = 0; copy < (repeated ? 2u : 1u); ++copy) {
    const Time span = delay();
    if (span > kSecond) outcome_.faults.add(Fault::delayed);
    if (copy == 1) outcome_.faults.add(Fault::duplicate);
    plan(on_grid(now_ + span), EventKind::access_arrives, trip.client, at, copy);
    ++trip.events;
  }
}

void World::visit_arrives(const Event& event) {
  Trip& trip = trips_.items[event.what];
  trip.answers[event.detail] = resource_.visit(now_, trip.visit);
  if (message_lost()) {
    outcome_.faults.add(Fault::reply_lost);
    trips_.drop_event(event.what);
    return;
  }
  plan(now_ + delay(), EventKind::access_answered, trip.client, event.what, event.detail);
}

}  // namespace leasehold::simulation
