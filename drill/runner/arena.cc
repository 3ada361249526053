#include "arena.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "kit/try.h"

namespace leasehold::drill {

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kCalmTurns = 5;  // one in so many turns is left alone

}  // namespace

Arena::Arena(std::string lock, const Plan& plan, Chance& chance, Ledger& ledger, StartWorker start)
    : lock_(std::move(lock)),
      plan_(plan),
      chance_(chance),
      ledger_(ledger),
      start_(std::move(start)) {}

Status Arena::open() {
  entered_.resize(plan_.workers);
  for (unsigned i = 0; i < plan_.workers; ++i) {
    auto worker = TRY(start_(lock_, i));
    workers_.push_back(std::move(worker));
  }
  return {};
}

// Long enough for a store that counts leases in whole seconds, on a busy machine.
Arena::Clock::duration Arena::patience() const {
  return 8 * std::max(ttl_, Millis(100)) + 5s;
}

Status Arena::hear(std::size_t worker) {
  for (const std::string& line : workers_[worker].lines()) {
    Status done;
    std::istringstream words(line);
    std::string verb;
    Entered said;
    std::int64_t millis = 0;
    words >> verb >> said.granted_at >> millis >> said.token;
    if (std::int64_t piece = 0; words >> piece) said.piece = piece;
    if (verb == "entered") {
      ttl_ = Millis(millis);
      entered_[worker] = said;
      done = entered(worker);
    } else if (verb == "read") {
      has_read(said.granted_at);
    } else if (line == "wrote" || line == "refused" || line == "unknown") {
      done = answered(worker, line);
    }
    if (!done) return done;
  }
  if (!workers_[worker].has_ended()) return {};
  return fail(ErrorCode::internal, "worker " + workers_[worker].name() + " has ended by itself");
}

std::optional<Fault> Arena::next_fault() {
  std::vector<Fault> mine;
  for (const Fault fault : plan_.faults) {
    if (fault == Fault::pause || fault == Fault::kill_holder) mine.push_back(fault);
  }
  if (calm_ || mine.empty() || chance_.one_in(kCalmTurns)) return std::nullopt;
  return mine[chance_.below(mine.size())];
}

Status Arena::strike_or_go(std::size_t worker) {
  const auto fault = next_fault();
  if (fault == Fault::kill_holder) return kill(worker);
  if (fault == Fault::pause) {
    freeze(worker);
  } else {
    go(worker);
  }
  return {};
}

// Beside a writer that is frozen nobody reads until its lease has ended.
void Arena::has_read(std::int64_t granted_at) {
  if (victim_ && granted_at > frozen_at_) ++ledger_.reads_meanwhile;
}

Status Arena::entered(std::size_t worker) {
  if (!victim_) return strike_or_go(worker);
  if (entered_[worker].piece != entered_[*victim_].piece) {
    entered_elsewhere(worker);
    return {};
  }
  if (!came_after_victim(worker)) {  // no successor: it was there before
    go(worker);
    return {};
  }
  if (step_ != Step::waiting_for_successor) {
    at_the_door_.push_back(worker);
    return {};
  }
  full_ = true;
  successor_ = worker;
  successor_token_ = entered_[worker].token;
  if (write_first_) {
    step_ = Step::successor_writes;
    go(worker);
  } else {
    at_the_door_.push_back(worker);
    thaw();
  }
  return {};
}

void Arena::entered_elsewhere(std::size_t worker) {
  if (plan_.use == Use::partitions) {  // it may become the successor where it is not yet
    go(worker);
    return;
  }
  let_go_at(entered_[worker].piece);
  at_the_door_.push_back(worker);
}

// A partition may have passed on before its owner, who did not know that yet, was frozen.
bool Arena::came_after_victim(std::size_t worker) const {
  const std::int64_t since =
      plan_.use == Use::partitions ? entered_[*victim_].granted_at : frozen_at_;
  return entered_[worker].granted_at > since;
}

// Who waits at the door has lost its slot if another one has entered there, and must not keep
// itself from what the next one is to get; of a group that may be anything.
void Arena::let_go_at(Piece piece) {
  std::erase_if(at_the_door_, [&](std::size_t worker) {
    if (plan_.use != Use::partitions && entered_[worker].piece != piece) return false;
    go(worker);
    return true;
  });
}

void Arena::freeze(std::size_t worker) {
  let_go_at(entered_[worker].piece);
  workers_[worker].freeze();
  ledger_.strike(Fault::pause, workers_[worker].name(), lock_);
  victim_ = worker;
  step_ = Step::waiting_for_successor;
  write_first_ = chance_.one_in(2);
  full_ = false;
  since_ = Clock::now();
  frozen_at_ = now();
}

// It is told to write while it is still stopped: that is the first thing it does when it goes on.
void Arena::thaw() {
  WorkerProcess& victim = workers_[*victim_];
  full_ = victim.was_frozen() && full_;
  victim.go();
  ledger_.heal(Fault::pause, victim.name(), lock_);
  victim.thaw();
  step_ = Step::late_write;
  since_ = Clock::now();
}

Status Arena::answered(std::size_t worker, const std::string& how) {
  if (how == "wrote") ++ledger_.written;
  if (victim_ && step_ == Step::successor_writes && worker == successor_) {
    thaw();
    return {};
  }
  if (!victim_ || worker != *victim_ || step_ != Step::late_write) return {};
  if (full_) {
    late_write(how);
  } else {
    ++ledger_.cycles.unfinished;
  }
  return end_cycle();
}

void Arena::late_write(const std::string& how) {
  ledger_.cycles.late_write(how);
  const Entered& late = entered_[*victim_];
  const bool at_a_slot = plan_.use == Use::permits && late.piece;
  ledger_.remember({resource_name(plan_.use, lock_, late.piece),
                    at_a_slot ? std::optional(Slot{*late.piece}) : std::nullopt, late.token,
                    successor_token_, how});
}

Status Arena::end_cycle() {
  victim_.reset();
  // Those at the door go on, and one of them may be the next to be struck.
  while (!at_the_door_.empty() && !victim_) {
    const std::size_t next = at_the_door_.front();
    at_the_door_.pop_front();
    TRY(strike_or_go(next));
  }
  return {};
}

Status Arena::kill(std::size_t worker) {
  // Sometimes just before its write, sometimes in the middle of it.
  if (chance_.one_in(2)) go(worker);
  workers_[worker].kill();
  ledger_.strike(Fault::kill_holder, workers_[worker].name(), lock_);
  ledger_.heal(Fault::kill_holder, workers_[worker].name(), lock_);
  return replace(worker);
}

Status Arena::replace(std::size_t worker) {
  auto next = TRY(start_(lock_, static_cast<unsigned>(worker)));
  workers_[worker] = std::move(next);
  return {};
}

Status Arena::look_at_clock() {
  if (!victim_ || Clock::now() - since_ < patience()) return {};
  if (step_ != Step::late_write) {
    full_ = false;
    thaw();
    return {};
  }
  // It does not answer: somebody else takes its place.
  ++ledger_.cycles.unfinished;
  workers_[*victim_].kill();
  TRY(replace(*victim_));
  return end_cycle();
}

}  // namespace leasehold::drill
