// Between the engines and the world: their calls and notices, and what must hold of them.
#include <algorithm>

#include "engine/timing.h"
#include "world.h"

namespace leasehold::simulation {
namespace {

constexpr BootClock::duration kLateness = std::chrono::milliseconds(2500);

}  // namespace

World::Acquisition& World::acquisition(const RequestId& id) {
  return acquisitions_[recorder_.history().request(id)];
}

RequestRef World::track(const RequestId& id, const Client& client, std::uint32_t worker) {
  const RequestRef ref = recorder_.history().request(id);
  if (acquisitions_.size() <= ref) acquisitions_.resize(ref + 1);
  Acquisition& it = acquisitions_[ref];
  it.id = id;
  it.client = number(client);
  it.life = client.life;
  it.worker = worker;
  return ref;
}

// Takes out what the engine wants done, until it wants nothing more.
void World::settle(Client& client) {
  for (;;) {
    engine::Effects effects = client.engine->take_effects();
    if (effects.notices.empty() && effects.calls.empty()) break;
    for (engine::Notice& notice : effects.notices) take_notice(client, notice);
    for (engine::StoreCall& call : effects.calls) take_call(client, call);
  }
  client.engine->check_invariants();
  plan_tick(client);
}

void World::plan_tick(Client& client) {
  const auto wake = client.engine->next_wake();
  if (wake == client.wake) return;
  client.wake = wake;
  ++client.tick_generation;
  if (!wake) return;
  Time when = std::max(client.clock.when(*wake), now_ + 1);
  if (storm_ && chance_.per_mille(settings_.timers_late)) {
    outcome_.faults.add(Fault::timer_late);
    when += chance_.between(kMillisecond, 400 * kMillisecond);
  }
  plan(when, EventKind::tick, number(client), 0, client.tick_generation);
}

// ---- calls ---------------------------------------------------------------------------------

void World::take_call(Client& client, engine::StoreCall& wanted) {
  Call call;
  if (auto* renew = std::get_if<engine::SendRenew>(&wanted)) {
    shorten_or_lengthen(client, *renew);
    judge_renewal(client, *renew);
    call.kind = Call::Kind::renew;
    call.confirms = !renew->lane;
    for (const RenewCall& each : renew->calls) {
      const RequestRef ref = recorder_.history().request(each.request);
      call.renewals.push_back({each.request, on_wire(acquisitions_[ref], ref),
                               static_cast<std::uint32_t>(each.lock.str()[0] - 'a'),
                               in_time(each.ttl.length())});
    }
    return send(client, std::move(call), renew->deadline);
  }
  if (auto* acquire = std::get_if<engine::SendAcquire>(&wanted)) {
    call.kind = Call::Kind::acquire;
    call.request = recorder_.history().request(acquire->call.request);
    Acquisition& it = acquisitions_[call.request];
    judge_limit(it, acquire->deadline);
    if (it.acquire_in_flight) problem("E4", "two acquires of one request were in flight");
    if (it.release_in_flight) problem("E4", "an acquire was sent while its release was in flight");
    it.acquire_in_flight = true;
    if (options_.mutation == Mutation::new_id_after_lost_reply && it.reply_was_lost) {
      it.reply_was_lost = false;
      const Worker& worker = client.workers[it.worker];
      note(client, drill::Kind::unknown, drill::Operation::acquire, worker);
      it.alias = track(RequestId::random(chance_), client, it.worker);
      acquisitions_[it.alias].answers = 1;
      note(client, drill::Kind::invoke, drill::Operation::acquire, worker);
    }
    call.on_wire = on_wire(it, call.request);
    call.lock = static_cast<std::uint32_t>(acquire->call.lock.str()[0] - 'a');
    call.ttl = acquire->call.ttl.length();
    call.mode = acquire->call.mode;
    call.queue = acquire->call.queue;
    return send(client, std::move(call), acquire->deadline);
  }
  auto& release = std::get<engine::SendRelease>(wanted);
  call.kind = Call::Kind::release;
  call.request = recorder_.history().request(release.call.request);
  Acquisition& it = acquisitions_[call.request];
  if (it.acquire_in_flight) problem("E4", "a release overtook its acquire");
  if (it.release_in_flight) problem("E4", "two releases of one request were in flight");
  if (options_.mutation == Mutation::release_not_sent && chance_.one_in(4)) {
    client.engine->release_replied(local(client), it.id, ReleaseReply::released);
    return;
  }
  it.release_in_flight = true;
  call.on_wire = on_wire(it, call.request);
  call.lock = static_cast<std::uint32_t>(release.call.lock.str()[0] - 'a');
  call.keep_for = in_time(release.call.keep_for);
  send(client, std::move(call), release.deadline);
}

void World::shorten_or_lengthen(const Client& client, engine::SendRenew& renew) const {
  if (options_.mutation == Mutation::confirms_for_too_long && !renew.lane) {
    renew.deadline = local(client) + std::chrono::seconds(2);
  }
  if (options_.mutation != Mutation::lost_lease_hurries || !renew.lane) return;
  for (const Worker& worker : client.workers) {
    if (worker.state != Worker::State::working || !worker.lost) continue;
    renew.deadline = std::min(renew.deadline, local(client) + engine::renewal_interval(worker.ttl));
  }
}

// The end of a lease of its batch may take some of its time.
void World::judge_renewal(const Client& client, const engine::SendRenew& renew) {
  if (!renew.lane) return judge_limit(acquisition(renew.calls.front().request), renew.deadline);
  BootTime least = local(client) + engine::renewal_interval(renew.calls.front().ttl.length());
  for (const RenewCall& each : renew.calls) {
    const Worker& worker = client.workers[acquisition(each.request).worker];
    least = std::min(least, worker.deadline);
    if (!worker.renewed) problem("E9", "a lease was renewed although that was stopped");
  }
  if (renew.deadline < least) problem("E8", "a renewal had less time than its lease has");
}

// The caller may be in this call.
void World::judge_limit(const Acquisition& it, BootTime deadline) {
  if (deadline > it.answer_by) problem("E3", "a call of an acquire may outlast its caller");
}

// ---- notices -------------------------------------------------------------------------------

void World::take_notice(Client& client, engine::Notice& notice) {
  if (auto* ended = std::get_if<engine::AcquireEnded>(&notice)) {
    if (options_.mutation == Mutation::answers_never && chance_.one_in(50)) return;
    if (options_.mutation == Mutation::answers_twice && chance_.one_in(50)) {
      engine::AcquireEnded again = *ended;
      acquire_ended(client, again);
    }
    return acquire_ended(client, *ended);
  }
  if (const auto* ended = std::get_if<engine::ReleaseEnded>(&notice)) {
    return release_ended(client, *ended);
  }
  engine::LeaseChanged changed = std::get<engine::LeaseChanged>(notice);
  if (changed.state == LeaseState::held) {
    const Millis ttl = settings_.shortest_ttl;  // what it was does not matter: at least this
    if (options_.mutation == Mutation::no_drift_allowance) {
      changed.deadline += engine::drift_allowance(ttl);
    }
  }
  lease_changed(client, changed);
}

void World::acquire_ended(Client& client, engine::AcquireEnded& ended) {
  const RequestRef ref = recorder_.history().request(ended.request);
  Acquisition& it = acquisitions_[ref];
  if (++it.answers > 1) return problem("E1", "an acquire was answered twice");
  const BootTime now = local(client);
  if (it.undisturbed && now > it.answer_by + kLateness) {
    problem("E3", "an acquire was answered too late");
  }
  Worker& worker = client.workers[it.worker];
  if (!ended.result) {
    const bool unknown = ended.result.error().code == ErrorCode::outcome_unknown;
    note(client, unknown ? drill::Kind::unknown : drill::Kind::fail, drill::Operation::acquire,
         worker);
    worker.state = Worker::State::idle;
    return rest(client, it.worker, chance_.between(0, 50 * kMillisecond));
  }
  engine::Grant& grant = *ended.result;
  if (options_.mutation == Mutation::deadline_from_reply) {
    grant.deadline = now + grant.ttl - engine::drift_allowance(grant.ttl);
  }
  if (options_.mutation == Mutation::no_drift_allowance) {
    grant.deadline += engine::drift_allowance(grant.ttl);
  }
  if (grant.deadline <= now) problem("E2", "a lease was handed out that was over");
  const std::int64_t at_store = store_.token_of(now_, worker.lock, on_wire(it, ref));
  if (at_store != 0 && at_store != grant.token.value()) ++outcome_.older_tokens_told;
  worker.state = Worker::State::working;
  worker.token = grant.token.value();
  worker.slot = grant.slot;
  worker.deadline = grant.deadline;
  worker.lost = false;
  worker.careless = chance_.per_mille(settings_.careless);
  worker.renewed = true;
  worker.writes = false;
  worker.writes_left = worker.reads_left = static_cast<int>(chance_.between(1, 3));
  worker.retries_left = 3;
  worker.sequence = 0;
  note(client, drill::Kind::ok, drill::Operation::acquire, worker,
       client.clock.when(grant.deadline));
  rest(client, it.worker, chance_.between(0, 2 * kMillisecond));
}

void World::release_ended(Client& client, const engine::ReleaseEnded& ended) {
  Acquisition& it = acquisition(ended.request);
  if (!it.owes_release || ++it.releases > 1) return problem("E1", "a release was answered twice");
  const BootTime now = local(client);
  if (it.undisturbed && now > it.answer_by + kLateness) {
    problem("E3", "a release was answered too late");
  }
  Worker& worker = client.workers[it.worker];
  drill::Kind kind = drill::Kind::unknown;
  if (ended.result) {
    const bool released = *ended.result == ReleaseOutcome::released;
    kind = released ? drill::Kind::ok : drill::Kind::fail;
  }
  note(client, kind, drill::Operation::release, worker);
  worker.state = Worker::State::idle;
  rest(client, it.worker, chance_.between(0, 100 * kMillisecond));
}

void World::lease_changed(Client& client, engine::LeaseChanged changed) {
  Acquisition& it = acquisition(changed.request);
  Worker& worker = client.workers[it.worker];
  if (it.told_lost && changed.state != LeaseState::lost) {
    return problem("E6", "a lost lease came back");
  }
  const bool own =
      acquisitions_[worker.request].id == changed.request && worker.state == Worker::State::working;
  if (changed.state == LeaseState::lost) {
    if (own && !it.told_lost) note(client, drill::Kind::fail, drill::Operation::renew, worker);
    const bool beside_a_long_one = std::any_of(
        client.workers.begin(), client.workers.end(),
        [&](const Worker& other) { return other.holds() && other.ttl >= 4 * worker.ttl; });
    if (own && !it.told_lost && beside_a_long_one) outcome_.faults.add(Fault::lost_short_lease);
    it.told_lost = true;
    if (own) worker.lost = true;
    return;
  }
  if (own && worker.deadline <= local(client)) {
    problem("E6", "a lease came back whose deadline its holder had seen pass");
  }
  if (!own || changed.state != LeaseState::held) return;
  worker.deadline = changed.deadline;
  note(client, drill::Kind::ok, drill::Operation::renew, worker,
       client.clock.when(changed.deadline));
}

}  // namespace leasehold::simulation
