#include "world.h"

namespace leasehold::simulation {
namespace {

constexpr std::uint64_t kStepsInARound = 5'000;
constexpr std::uint64_t kStepsToLeave = 100'000;
constexpr std::size_t kProblemsKept = 10;

// After a fault: a lost call, its retry, a waiter that is passed over.
constexpr Time kLongestIdle = 8 * kSecond;

}  // namespace

World::World(const Options& options)
    : options_(options),
      settings_(settings_of(options.seed)),
      chance_(options.seed),
      store_(recorder_, chance_, settings_, options.mutation),
      resource_(recorder_, chance_, settings_, options.mutation),
      clients_(static_cast<std::size_t>(settings_.clients)),
      acquisitions_(1),
      owner_(OwnerLabel::parse("caller").value()) {
  outcome_.seed = options.seed;
  drill::History& history = recorder_.history();
  store_process_ = history.process("store");
  network_process_ = history.process("network");
  foreign_store_ = history.store(StoreId::random(chance_));
  for (std::uint32_t lock = 0; lock < static_cast<std::uint32_t>(settings_.locks); ++lock) {
    lock_names_.push_back(LockName::parse(name_of_lock(lock)).value());
    lock_refs_.push_back(history.lock(name_of_lock(lock)));
  }
  for (Client& client : clients_) {
    client.process = history.process("client " + std::to_string(number(client)));
    client.clock.set_rate(
        0, static_cast<int>(chance_.between(-DriftingClock::kMaxPpm, DriftingClock::kMaxPpm)));
    client.workers.resize(static_cast<std::size_t>(settings_.workers));
    restart(client);
  }
}

// ---- steps ---------------------------------------------------------------------------------

// Work in rounds, after each of which everybody leaves and nothing may be left.
Outcome World::run() {
  while (recorder_.steps() < options_.steps) {
    if (!work(recorder_.steps() + kStepsInARound) || !let_everybody_leave()) break;
  }
  outcome_.steps = recorder_.steps();
  outcome_.virtual_ns = static_cast<std::uint64_t>(now_);
  outcome_.trace = recorder_.hash();
  outcome_.granted_beside = store_.granted_beside();
  outcome_.report = drill::check(recorder_.history());
  for (const drill::Violation& each : outcome_.report.violations) {
    std::string sentence = each.sentence;
    for (const std::size_t at : each.records) {
      sentence += "\n  " + drill::describe(recorder_.history(), at);
    }
    problem(drill::to_string(each.check), std::move(sentence));
  }
  const drill::Overlaps& overlaps = outcome_.report.overlaps;
  if (overlaps.before_deadline > 0 && outcome_.faults[Fault::forced_release] == 0) {
    problem("D1", std::to_string(overlaps.before_deadline) +
                      " clients got the lock before the deadline of another holder");
  }
  if (outcome_.report.liveness.longest_idle > kLongestIdle) {
    problem("L1", "a free lock was wanted for " +
                      std::to_string(outcome_.report.liveness.longest_idle / kMillisecond) +
                      " ms without a fault\n  until " +
                      drill::describe(recorder_.history(), outcome_.report.liveness.idle_until));
  }
  if (!outcome_.problems.empty()) {
    const std::size_t records = recorder_.history().records().size();
    outcome_.tail = "the last records\n";
    for (std::size_t at = records - std::min<std::size_t>(records, 30); at < records; ++at) {
      outcome_.tail += "  " + drill::describe(recorder_.history(), at) + "\n";
    }
    outcome_.tail += "the last steps\n" + recorder_.tail();
  }
  return std::move(outcome_);
}

void World::plan(Time time, EventKind kind, std::uint16_t client, std::uint32_t what,
                 std::uint32_t detail) {
  Event event;
  event.time = time;
  event.kind = kind;
  event.client = client;
  event.what = what;
  event.detail = detail;
  schedule_.add(event);
}

// One thing happens; what is out of date does not count. False: nothing is left to happen.
bool World::step() {
  while (!schedule_.empty()) {
    const Event event = schedule_.take();
    now_ = std::max(now_, event.time);
    if (!dispatch(event)) continue;
    recorder_.step(event);
    return true;
  }
  return false;
}

bool World::dispatch(const Event& event) {
  switch (event.kind) {
    case EventKind::call_arrives:
      call_arrives(event);
      return true;
    case EventKind::access_arrives:
      visit_arrives(event);
      return true;
    case EventKind::client_resumes:
      resume(clients_[event.client]);
      return true;
    case EventKind::client_restarts:
      restart(clients_[event.client]);
      note_fault(drill::Kind::heal, drill::Operation::crash, clients_[event.client].process);
      return true;
    case EventKind::client_reconnects:
      clients_[event.client].cannot_send = clients_[event.client].cannot_receive = false;
      note_fault(drill::Kind::heal, drill::Operation::disconnect, clients_[event.client].process);
      return true;
    case EventKind::store_restarts:
      store_down_ = false;
      note_fault(drill::Kind::heal, drill::Operation::crash, store_process_);
      return true;
    case EventKind::store_resumes:
      store_paused_ = false;
      note_fault(drill::Kind::heal, drill::Operation::pause, store_process_);
      for (Event each : std::exchange(at_the_paused_store_, {})) {
        each.time = now_;
        schedule_.add(each);
      }
      return true;
    case EventKind::store_deletes:
      store_.delete_whatever(now_, event.what);
      tell_what_the_store_tells();
      return true;
    case EventKind::nemesis:
      if (!storm_ || event.detail != weather_) return false;
      nemesis();
      return true;
    case EventKind::weather:
      if (closing_ || event.detail != weather_) return false;
      change_weather();
      return true;
    default:
      return dispatch_to_client(event);
  }
}

bool World::dispatch_to_client(const Event& event) {
  Client& client = clients_[event.client];
  if (client.paused) {
    client.deferred.push_back(event);
    return false;
  }
  switch (event.kind) {
    case EventKind::reply_arrives:
    case EventKind::call_times_out:
      return answer_call(event);
    case EventKind::patience_ends:
      patience_ends(event);
      return true;
    case EventKind::nudge_arrives:
    case EventKind::ended_arrives: {
      const Acquisition& it = acquisitions_[event.what];
      if (!client.up() || it.life != client.life) return false;
      if (event.kind == EventKind::nudge_arrives) {
        client.engine->nudged(local(client), it.id);
      } else {
        client.engine->ended(it.id);
      }
      settle(client);
      return true;
    }
    case EventKind::tick: {
      if (event.detail != client.tick_generation || !client.up()) return false;
      client.wake.reset();
      const BootTime now = local(client);
      client.engine->tick(now);
      const auto next = client.engine->next_wake();
      if (next && *next <= now) problem("E7", "a tick left something due");
      settle(client);
      return true;
    }
    case EventKind::worker_wakes:
      if (!client.up() || client.workers[event.what].generation != event.detail) return false;
      worker_wakes(client, event.what);
      return true;
    case EventKind::access_answered:
    case EventKind::access_times_out: {
      Trip& trip = trips_.items[event.what];
      const bool answered = event.kind == EventKind::access_answered;
      const bool matters = !trip.done && client.up() && trip.life == client.life;
      if (matters) {
        trip.done = true;
        visit_ended(client, trip.worker, answered, trip.answers[event.detail]);
      }
      trips_.drop_event(event.what);
      return matters;
    }
    default:
      return false;
  }
}

// ---- the end -------------------------------------------------------------------------------

// False: it makes no sense to go on.
bool World::work(std::uint64_t until) {
  closing_ = false;
  plan(now_ + 1, EventKind::weather, 0, 0, ++weather_);
  for (Client& client : clients_) {
    for (std::uint32_t i = 0; i < client.workers.size(); ++i) {
      rest(client, i, chance_.between(0, 20 * kMillisecond));
    }
  }
  while (recorder_.steps() < until) {
    if (!step() || outcome_.problems.size() >= kProblemsKept) return false;
  }
  return true;
}

bool World::let_everybody_leave() {
  closing_ = true;
  ++weather_;
  if (storm_) change_weather();
  for (Client& client : clients_) {
    if (!client.up() || client.paused) continue;
    for (std::uint32_t i = 0; i < client.workers.size(); ++i) {
      const bool one_more = client.workers[i].state == Worker::State::idle && chance_.one_in(2);
      if (one_more) start_acquire(client, i, chance_.between(0, 5 * kMillisecond));
    }
  }
  const std::uint64_t limit = recorder_.steps() + kStepsToLeave;
  while (!everybody_left()) {
    if (outcome_.problems.size() >= kProblemsKept) return false;
    if (recorder_.steps() < limit && step()) continue;
    problem("E5", "the clients do not come to rest");
    return false;
  }
  judge_the_end();
  return true;
}

bool World::everybody_left() const {
  if (store_down_ || store_paused_) return false;
  for (const Client& client : clients_) {
    if (!client.up() || client.paused || !client.engine->settled()) return false;
    if (client.engine->next_wake()) return false;
    for (const Worker& worker : client.workers) {
      if (worker.state != Worker::State::idle) return false;
    }
  }
  return true;
}

void World::judge_the_end() {
  for (const Acquisition& it : acquisitions_) {
    if (it.life != clients_[it.client].life) continue;
    if (it.answers != 1) {
      problem("E1", "an acquire was answered " + std::to_string(it.answers) + " times");
    }
    if (it.releases != (it.owes_release ? 1 : 0)) {
      problem("E1", "a release was answered " + std::to_string(it.releases) + " times");
    }
  }
  for (const Leftover& left : store_.leftovers(now_)) {
    const Acquisition& it = acquisitions_[left.request];
    if (it.life != clients_[it.client].life) continue;  // died: the store ends it by time
    problem("E5", std::string(left.waits ? "a place in the queue" : "a grant") + " of lock " +
                      name_of_lock(left.lock) + " was left at the store");
  }
}

// ---- telling -------------------------------------------------------------------------------

void World::problem(std::string_view check, std::string sentence) {
  if (outcome_.problems.size() >= kProblemsKept) return;
  outcome_.problems.push_back({std::string(check), std::move(sentence)});
}

void World::note(const Client& client, drill::Kind kind, drill::Operation operation,
                 const Worker& worker, Time deadline) {
  drill::Record record;
  record.time = now_;
  record.process = client.process;
  record.kind = kind;
  record.operation = operation;
  record.lock = lock_refs_[worker.lock];
  record.request = on_wire(acquisitions_[worker.request], worker.request);
  record.deadline = deadline;
  record.set_mode(worker.mode, worker.slot);
  if (operation == drill::Operation::acquire && kind == drill::Kind::ok) {
    record.token = worker.token;
    record.store = store_.ref();
  }
  if (operation == drill::Operation::write) {
    record.value = worker.next;
    record.base = worker.seen;
    record.sequence = worker.sequence;
  }
  recorder_.record(record);
}

void World::note_fault(drill::Kind kind, drill::Operation operation, drill::ProcessRef process) {
  drill::Record record;
  record.time = now_;
  record.process = process;
  record.kind = kind;
  record.operation = operation;
  recorder_.record(record);
}

Outcome run(const Options& options) {
  return World(options).run();
}

std::string to_text(const Outcome& outcome) {
  std::string text =
      "seed " + std::to_string(outcome.seed) + ", " + std::to_string(outcome.steps) + " steps\n";
  for (const Problem& each : outcome.problems) text += each.check + ": " + each.sentence + "\n";
  return text + outcome.tail;
}

}  // namespace leasehold::simulation
