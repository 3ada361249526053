// What goes wrong beyond single messages.
#include "world.h"

namespace leasehold::simulation {

void World::change_weather() {
  storm_ = !storm_;
  ++weather_;
  note_fault(storm_ ? drill::Kind::fault : drill::Kind::heal, drill::Operation::storm,
             network_process_);
  if (closing_) return;
  if (storm_) {
    plan(now_ + chance_.between(20 * kSecond, 60 * kSecond), EventKind::weather, 0, 0, weather_);
    plan(now_ + 1, EventKind::nemesis, 0, 0, weather_);
  } else {
    plan(now_ + 20 * kSecond, EventKind::weather, 0, 0, weather_);
  }
}

void World::nemesis() {
  plan(now_ + chance_.between(20 * kMillisecond, kSecond), EventKind::nemesis, 0, 0, weather_);
  const int weights[] = {settings_.pauses,       settings_.crashes,     settings_.store_crashes,
                         settings_.store_pauses, settings_.clock_steps, settings_.drifts,
                         settings_.cuts,         settings_.forgeries,   settings_.forced,
                         settings_.sweeps};
  int total = 0;
  for (const int weight : weights) total += weight;
  if (total == 0) return;
  int draw = static_cast<int>(chance_.below(static_cast<std::uint64_t>(total)));
  std::size_t kind = 0;
  while (draw >= weights[kind]) draw -= weights[kind++];
  Client& client = clients_[chance_.below(clients_.size())];
  switch (kind) {
    case 0:
      return pause(client);
    case 1:
      return crash(client);
    case 2:
      return crash_store();
    case 3:
      return pause_store();
    case 4: {
      outcome_.faults.add(Fault::wall_clock_set);
      const Time hour = 3600 * kSecond;
      store_.set_wall_clock(chance_.one_in(2) ? hour : -hour);
      note_fault(drill::Kind::fault, drill::Operation::clock, store_process_);
      return note_fault(drill::Kind::heal, drill::Operation::clock, store_process_);
    }
    case 5:
      outcome_.faults.add(Fault::drift_changed);
      client.clock.set_rate(
          now_, static_cast<int>(chance_.between(-DriftingClock::kMaxPpm, DriftingClock::kMaxPpm)));
      return;
    case 6:
      return cut(client);
    case 7:
      return forge();
    case 9:
      return sweep_marks();
    default: {
      const auto lock = static_cast<std::uint32_t>(chance_.below(lock_names_.size()));
      if (store_down_ || !store_.force_release(now_, lock)) return;
      outcome_.faults.add(Fault::forced_release);
      return tell_what_the_store_tells();
    }
  }
}

// ---- clients -------------------------------------------------------------------------------

// Nothing runs on it: neither time nor answers reach the engine. Its calls go on without it.
void World::pause(Client& client) {
  if (client.paused || !client.up()) return;
  outcome_.faults.add(Fault::client_paused);
  client.paused = true;
  for (const Worker& worker : client.workers) {
    if (worker.request != 0) acquisitions_[worker.request].undisturbed = false;
  }
  note_fault(drill::Kind::fault, drill::Operation::pause, client.process);
  const Time ttl = in_time(settings_.longest_ttl);
  const Time span = chance_.one_in(2) ? chance_.between(kMillisecond, ttl / 2)
                                      : chance_.between(ttl / 2, ttl * 5 / 2);
  plan(now_ + span, EventKind::client_resumes, number(client));
}

void World::resume(Client& client) {
  client.paused = false;
  note_fault(drill::Kind::heal, drill::Operation::pause, client.process);
  for (const Worker& worker : client.workers) {
    const bool ended_meanwhile =
        worker.state == Worker::State::working && !worker.lost && worker.deadline <= local(client);
    if (ended_meanwhile) outcome_.faults.add(Fault::paused_holder);
  }
  // Its threads wake in any order.
  for (Event each : std::exchange(client.deferred, {})) {
    each.time = now_ + chance_.between(0, 3 * kMillisecond);
    schedule_.add(each);
  }
}

void World::crash(Client& client) {
  if (client.paused || !client.up()) return;
  outcome_.faults.add(Fault::client_crashed);
  note_fault(drill::Kind::fault, drill::Operation::crash, client.process);
  client.engine.reset();
  client.wake.reset();
  forget_gathered(client);
  ++client.tick_generation;
  ++client.life;
  for (Worker& worker : client.workers) {
    const std::uint32_t generation = worker.generation + 1;
    worker = Worker{};
    worker.generation = generation;
  }
  plan(now_ + chance_.between(10 * kMillisecond, 5 * kSecond), EventKind::client_restarts,
       number(client));
}

void World::restart(Client& client) {
  ++client.life;
  client.engine.emplace(settings_.queues, chance_);
  for (std::uint32_t i = 0; i < client.workers.size(); ++i) {
    rest(client, i, chance_.between(0, 20 * kMillisecond));
  }
}

void World::cut(Client& client) {
  if (client.cannot_send || client.cannot_receive) return;
  outcome_.faults.add(Fault::disconnected);
  const std::uint64_t way = chance_.below(3);
  client.cannot_send = way != 0;
  client.cannot_receive = way != 1;
  note_fault(drill::Kind::fault, drill::Operation::disconnect, client.process);
  plan(now_ + chance_.between(10 * kMillisecond, 5 * kSecond), EventKind::client_reconnects,
       number(client));
}

// ---- store and resource --------------------------------------------------------------------

void World::crash_store() {
  if (store_down_ || store_paused_) return;
  outcome_.faults.add(Fault::store_crashed);
  store_down_ = true;
  switch (chance_.below(3)) {
    case 0:
      outcome_.faults.add(Fault::killed_in_sync);
      store_.crash_in_sync(now_);
      break;
    case 1:
      outcome_.faults.add(Fault::power_cut);
      store_.lose_power(now_);
      break;
    default:
      store_.crash(now_);
  }
  note_fault(drill::Kind::fault, drill::Operation::crash, store_process_);
  plan(now_ + chance_.between(10 * kMillisecond, 3 * kSecond), EventKind::store_restarts, 0);
}

void World::pause_store() {
  if (store_down_ || store_paused_) return;
  outcome_.faults.add(Fault::store_paused);
  store_paused_ = true;
  note_fault(drill::Kind::fault, drill::Operation::pause, store_process_);
  plan(now_ + chance_.between(10 * kMillisecond, 3 * kSecond), EventKind::store_resumes, 0);
}

// Somebody offers the fence what was never granted so: a token under another request, or of another
// store.
void World::forge() {
  Visit visit;
  visit.where.lock = static_cast<std::uint32_t>(chance_.below(lock_names_.size()));
  const LockUse& use = settings_.uses[visit.where.lock];
  if (use.permits > 0) visit.where.slot = Slot{chance_.between(0, use.permits - 1)};
  const std::int64_t mark = resource_.mark(visit.where);
  if (mark == 0) return;
  outcome_.faults.add(Fault::forged);
  visit.mode = draw_mode(visit.where.lock);
  visit.writes = visit.mode != Mode::shared() && chance_.one_in(2);
  visit.request = track(RequestId::random(chance_), clients_[0], 0);
  acquisitions_[visit.request].answers = 1;
  const bool foreign = chance_.one_in(2);
  visit.store = foreign ? foreign_store_ : store_.ref();
  visit.token = foreign ? mark + 1 : mark;
  visit.sequence = visit.writes ? 1000 : 0;
  visit.value = visit.writes ? ++last_value_ : 0;
  resource_.visit(now_, visit);
}

void World::sweep_marks() {
  if (resource_.sweep(now_, now_ - chance_.between(0, 30 * kSecond))) {
    outcome_.faults.add(Fault::swept);
  }
}

}  // namespace leasehold::simulation
