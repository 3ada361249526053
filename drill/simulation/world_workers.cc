// The callers: each takes a lock, enters, reads, thinks, writes, and gives the lock back.
#include "world.h"

namespace leasehold::simulation {

void World::rest(Client& client, std::uint32_t index, Time span) {
  Worker& worker = client.workers[index];
  plan(now_ + 1 + span, EventKind::worker_wakes, number(client), index, ++worker.generation);
}

void World::worker_wakes(Client& client, std::uint32_t index) {
  Worker& worker = client.workers[index];
  switch (worker.state) {
    case Worker::State::idle:
      if (!closing_) start_acquire(client, index);
      return;
    case Worker::State::waiting:
      return cancel(client, worker);
    case Worker::State::releasing:
      return;
    case Worker::State::working:
      break;
  }
  const bool stops = worker.lost && !worker.careless;
  const bool has_read = worker.only_reads() && worker.reads_left-- == 0;
  if (stops || has_read || (worker.writes && worker.writes_left == 0)) {
    return leave(client, index);
  }
  if (worker.writes) {
    worker.next = ++last_value_;
    ++worker.sequence;
    --worker.writes_left;
  }
  start_visit(client, index);
}

Mode World::draw_mode(std::uint32_t lock) {
  const LockUse& use = settings_.uses[lock];
  if (use.permits > 0) return Mode::permit_of(use.permits);
  return chance_.per_mille(use.readers) ? Mode::shared() : Mode::exclusive();
}

void World::start_acquire(Client& client, std::uint32_t index, Time cancel_after) {
  Worker& worker = client.workers[index];
  worker.lock = static_cast<std::uint32_t>(chance_.below(lock_names_.size()));
  worker.mode = draw_mode(worker.lock);
  worker.slot.reset();
  Millis ttl(chance_.between(settings_.shortest_ttl.count(), settings_.longest_ttl.count()));
  if (settings_.short_beside_long && chance_.one_in(2)) {
    ttl = settings_.shortest_ttl * chance_.between(1, 3);
  }
  if (settings_.grid > 1) ttl -= ttl % Millis(settings_.grid / kMillisecond);
  const Millis wait(chance_.one_in(3) ? 0 : chance_.between(1, chance_.one_in(6) ? 20'000 : 4'000));
  const Millis store_timeout(chance_.between(200, 2000));
  const BootTime now = local(client);
  // Answered by settle(), so the request must be known before.
  const RequestId id = client.engine->acquire(
      now,
      {lock_names_[worker.lock], owner_, Ttl::of(ttl).value(), wait, store_timeout, worker.mode});
  worker.request = track(id, client, index);
  worker.ttl = ttl;
  worker.state = Worker::State::waiting;
  acquisitions_[worker.request].answer_by = now + wait + store_timeout;
  note(client, drill::Kind::invoke, drill::Operation::acquire, worker);
  const bool hasty = chance_.one_in(2);
  if (chance_.one_in(20)) cancel_after = chance_.between(0, hasty ? 3 * kMillisecond : kSecond);
  if (cancel_after >= 0) rest(client, index, cancel_after);
  settle(client);
}

void World::cancel(Client& client, Worker& worker) {
  outcome_.faults.add(Fault::cancelled);
  Acquisition& it = acquisitions_[worker.request];
  const BootTime now = local(client);
  const bool overtakes =
      options_.mutation == Mutation::release_overtakes_acquire && it.acquire_in_flight;
  client.engine->cancel(now, it.id);
  if (overtakes) {
    for (Call& call : calls_.items) {
      const bool its = call.events > 0 && call.request == worker.request && !call.answered &&
                       call.kind == Call::Kind::acquire && call.client == it.client;
      if (its) call.abandoned = true;
    }
    it.acquire_in_flight = false;
    client.engine->acquire_replied(now, it.id, fail(ErrorCode::unavailable, "cancelled"));
    Call call;
    call.kind = Call::Kind::release;
    call.request = worker.request;
    call.on_wire = on_wire(it, worker.request);
    call.lock = worker.lock;
    call.abandoned = true;
    send(client, std::move(call), now + std::chrono::seconds(1));
  }
  settle(client);
}

void World::visit_ended(Client& client, std::uint32_t index, bool answered,
                        const VisitAnswer& answer) {
  Worker& worker = client.workers[index];
  if (worker.state != Worker::State::working) return;
  const drill::Operation operation =
      worker.writes ? drill::Operation::write : drill::Operation::read;
  if (!answered) {
    note(client, drill::Kind::unknown, operation, worker);
    if (worker.retries_left-- > 0) return start_visit(client, index);
    return leave(client, index);
  }
  if (!answer.accepted) {
    note(client, drill::Kind::fail, operation, worker);
    return leave(client, index);
  }
  note(client, drill::Kind::ok, operation, worker);
  worker.retries_left = 3;
  worker.seen = worker.writes ? worker.next : answer.value;
  worker.writes = !worker.only_reads();
  stop_or_resume_renewing(client, worker);
  Time thinks = chance_.between(0, 10 * kMillisecond);
  if (chance_.one_in(6)) thinks = chance_.between(0, in_time(settings_.longest_ttl));
  if (closing_) thinks = kMillisecond;
  rest(client, index, thinks);
}

void World::stop_or_resume_renewing(Client& client, Worker& worker) {
  if (!chance_.one_in(worker.renewed ? 20 : 3)) return;
  const RequestId& id = acquisitions_[worker.request].id;
  worker.renewed = !worker.renewed;
  outcome_.faults.add(worker.renewed ? Fault::renewing_resumed : Fault::renewing_stopped);
  if (worker.renewed) {
    client.engine->resume_renewing(local(client), id);
  } else if (options_.mutation != Mutation::renews_what_was_stopped) {
    client.engine->stop_renewing(id);
  }
  settle(client);
}

void World::leave(Client& client, std::uint32_t index) {
  Worker& worker = client.workers[index];
  Acquisition& it = acquisitions_[worker.request];
  const BootTime now = local(client);
  note(client, drill::Kind::invoke, drill::Operation::release, worker);
  if (chance_.one_in(4)) {
    worker.state = Worker::State::idle;
    client.engine->drop(now, it.id);
    rest(client, index, chance_.between(0, 100 * kMillisecond));
    return settle(client);
  }
  worker.state = Worker::State::releasing;
  ++worker.generation;
  const Millis timeout(chance_.between(1, 3000));
  const Millis keep_for(chance_.one_in(10) ? chance_.between(1, 500) : 0);
  it.owes_release = true;
  it.undisturbed = true;
  it.answer_by = now + timeout;
  client.engine->release(now, it.id, keep_for, timeout);
  settle(client);
}

}  // namespace leasehold::simulation
