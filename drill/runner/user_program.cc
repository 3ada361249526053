#include "user_program.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "chance.h"
#include "kit/text/number.h"
#include "kit/try.h"
#include "leasehold/url.h"
#include "rig/temp_folder.h"
#include "site.h"
#include "user_history.h"
#include "user_lookout.h"
#include "user_worker.h"

namespace leasehold::drill {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr Millis kLook = 10ms;
constexpr Millis kPatience = 30s;  // for what has no known length
constexpr Millis kBetweenStarts = 50ms;
constexpr int kChanges = 2;  // by successors: see work_of_successor()
constexpr int kMostFailures = 2;
constexpr const char* kDrill = "drill";  // in the history

// How a late write was answered.
enum class Answer {
  refused,
  accepted,
  lost,     // the worker says that it has written, and it is not there
  unknown,  // the worker neither wrote nor said that it could not
  missed,   // it was not frozen between its grant and its write
};

// "host:PID:command", as Leasehold's own clients call themselves.
pid_t process_in(const std::string& owner) {
  std::string_view rest = std::string_view(owner).substr(owner.find(':') + 1);
  return kit::take_number<pid_t>(rest).value_or(0);
}

class UserDrill {
 public:
  UserDrill(const UserPlan& plan, const Hooks& hooks, Lookout lookout)
      : plan_(plan),
        hooks_(hooks),
        lookout_(std::move(lookout)),
        history_(plan.lock),
        chance_(plan.seed) {}

  Result<Drilled> run();

 private:
  struct Frozen {
    UserWorker worker;
    std::string name;
    RequestId request;
    pid_t holder;  // the process that keeps the lease
    std::string content;
  };
  // What successors did while the holder was frozen.
  struct Succession {
    std::set<std::string> contents;  // what the resource held, one after the other
    std::string last;
    int changes = 0;
  };

  Status rehearse();
  Status try_cycles();
  Result<Answer> cycle();
  Result<std::optional<Frozen>> freeze_a_holder(const std::string& name);
  Result<std::optional<Succession>> let_successor_work(const std::string& name,
                                                       const Frozen& frozen);
  Result<Answer> let_late_one_write(Frozen frozen, const Succession& succession);
  void count(Answer answer);

  Result<UserWorker> start();
  Result<Lease> stand_in();
  Status wait_until_free();
  Millis patience() const { return 5s + 5 * work_; }

  // Looks until `seen` says yes. `timeout` after the patience, `cancelled` if the user wants an
  // end.
  template <class Seen>
  Status look_until(Millis patience, Seen seen);
  Status rest(Millis span);
  Status check_interrupt();
  void tell_progress();

  const UserPlan& plan_;
  const Hooks& hooks_;
  Lookout lookout_;
  UserHistory history_;
  Chance chance_;
  Outcome outcome_;
  Millis work_{0};  // from the grant to the write, as the rehearsal took
  bool ends_by_itself_ = false;
  unsigned turn_ = 0;
  Clock::time_point began_ = Clock::now();
};

// ---- waiting -----------------------------------------------------------------------------------

Status UserDrill::check_interrupt() {
  if (!hooks_.interrupted || !hooks_.interrupted()) return {};
  return fail(ErrorCode::cancelled, "a signal came before the drill had ended");
}

Status UserDrill::rest(Millis span) {
  const auto end = Clock::now() + span;
  do {
    pollfd wake{hooks_.wake, POLLIN, 0};
    const auto left = std::chrono::ceil<Millis>(end - Clock::now());
    poll(&wake, 1, static_cast<int>(std::clamp<Millis>(left, 0ms, 1s).count()));
    TRY(check_interrupt());
  } while (Clock::now() < end);
  return {};
}

template <class Seen>
Status UserDrill::look_until(Millis patience, Seen seen) {
  const auto end = Clock::now() + patience;
  for (;;) {
    const Result<bool> yes = seen();
    if (!yes) return fail(yes.error());
    if (*yes) return {};
    if (Clock::now() >= end) return fail(ErrorCode::timeout, "it did not happen");
    TRY(rest(kLook));
    tell_progress();
  }
}

bool timed_out(const Status& status) {
  return !status && status.error().code == ErrorCode::timeout;
}

void UserDrill::tell_progress() {
  if (!hooks_.progress) return;
  hooks_.progress({Clock::now() - began_, outcome_.cycles, outcome_.stale_refused,
                   outcome_.stale_accepted, injected(outcome_)});
}

// ---- the parts of a cycle ----------------------------------------------------------------------

Result<UserWorker> UserDrill::start() {
  return UserWorker::start({.argv = plan_.command,
                            .environment = lookout_.environment(),
                            .in = process::Null{},
                            .out = process::FromFd{STDERR_FILENO}});
}

// A lease that nobody renews any more ends by itself.
Status UserDrill::wait_until_free() {
  const auto now = TRY(lookout_.look_at_lock());
  const Millis longest = kPatience + (now.holder() ? now.holder()->remaining : 0ms);
  std::string owner;
  const Status freed = look_until(longest, [&]() -> Result<bool> {
    const auto status = TRY(lookout_.look_at_lock());
    if (status.holder()) owner = status.holder()->owner;
    return !status.holder();
  });
  if (!timed_out(freed)) return freed;
  return fail(ErrorCode::invalid, "lock '" + plan_.lock + "' does not become free; '" + owner +
                                      "' holds it. Give the drill a lock of its own with --lock");
}

Result<std::optional<UserDrill::Frozen>> UserDrill::freeze_a_holder(const std::string& name) {
  const auto before = TRY(lookout_.look_at_resource());
  auto worker = TRY(start());
  std::optional<LockStatus> taken;
  const Status held = look_until(kPatience, [&]() -> Result<bool> {
    const auto status = TRY(lookout_.look_at_lock());
    if (status.holder()) taken = status;
    return taken || worker.has_ended();
  });
  if (!held && !timed_out(held)) return fail(held.error());
  if (!taken) return std::nullopt;
  history_.took(name, *taken);
  // Between its read and its write, as far as that can be told from outside.
  const auto work = static_cast<std::uint64_t>(work_.count());
  const auto wait = work / 3 + chance_.below(work / 3 + 1);
  TRY(rest(Millis(wait)));
  if (!worker.freeze()) {
    return fail(ErrorCode::internal, "the worker could not be stopped within 10 s");
  }
  const auto now = TRY(lookout_.look_at_lock());
  const auto content = lookout_.look_at_resource();
  // An unreadable resource: frozen inside it, in a place where nobody else can even read.
  const bool holds = now.holder() && now.holder()->request == taken->holder()->request;
  if (!holds || !content || *content != before) {
    history_.gave_back(name, Kind::unknown);
    return std::nullopt;
  }
  history_.still_has(name, now);
  history_.froze(name);
  ++outcome_.faults.at(0).times;
  return Frozen{std::move(worker), name, now.holder()->request, process_in(now.holder()->owner),
                *content};
}

// Until the resource has changed twice. After one change only, a holder that had read a number
// before it was frozen, and now writes it plus one, would leave it as it is: the lost update could
// not be seen.
Result<std::optional<UserDrill::Succession>> UserDrill::let_successor_work(const std::string& name,
                                                                           const Frozen& frozen) {
  Succession seen{{frozen.content}, frozen.content, 0};
  std::optional<UserWorker> worker;
  RequestId known = frozen.request;
  std::string looked = frozen.content;
  int failures = 0;
  const auto lease = TRY(lookout_.look_at_lock());
  const Millis left = lease.holder() ? lease.holder()->remaining : 0ms;
  const Status worked = look_until(left + kPatience + patience(), [&]() -> Result<bool> {
    if (!worker) {
      auto started = TRY(start());
      worker.emplace(std::move(started));
    }
    const auto status = TRY(lookout_.look_at_lock());
    if (status.holder() && status.holder()->request != known) {
      known = status.holder()->request;
      history_.gave_back(name, Kind::ok);
      history_.took(name, status);
    }
    const bool over = worker->has_ended();
    const auto content = TRY(lookout_.look_at_resource());
    // A file that is being written is empty for a moment, which is no change of its own. So a
    // worker that ends is judged afterwards; of others each change must be seen twice.
    const bool lasts = ends_by_itself_ ? over : content == looked;
    if (content != seen.last && lasts) {
      ++seen.changes;
      ++outcome_.writes;
      history_.wrote(name);
      seen.contents.insert(content);
      seen.last = content;
    }
    looked = content;
    if (seen.changes >= kChanges) return true;
    if (over && content == seen.last) {
      const bool held = known != frozen.request;
      if (!worker->end().success() && held) ++failures;
      worker.reset();
      history_.gave_back(name, Kind::ok);
      TRY(rest(kBetweenStarts));
    }
    return failures >= kMostFailures;
  });
  if (!worked && !timed_out(worked)) return fail(worked.error());
  if (seen.changes == 0) return std::nullopt;
  // It may be about to give back what it has.
  if (worker && ends_by_itself_) {
    const Status ended =
        look_until(patience(), [&]() -> Result<bool> { return worker->has_ended(); });
    if (!ended && !timed_out(ended)) return fail(ended.error());
  }
  worker.reset();
  history_.gave_back(name, Kind::ok);
  const auto content = TRY(lookout_.look_at_resource());
  seen.contents.insert(content);
  seen.last = content;
  return seen;
}

Result<Lease> UserDrill::stand_in() {
  auto lease =
      TRY(lookout_.client().acquire(lookout_.lock(), {.ttl = 30s, .wait = plan_.ttl + kPatience}));
  const auto status = TRY(lookout_.look_at_lock());
  if (status.holder()) history_.took(kDrill, status);
  return lease;
}

Result<Answer> UserDrill::let_late_one_write(Frozen frozen, const Succession& succession) {
  const auto refused_before = TRY(lookout_.look_at_fence());
  bool changed = false;
  bool refused = false;
  const auto answered = [&]() -> Result<bool> {
    const auto content = TRY(lookout_.look_at_resource());
    changed = changed || content != succession.last;
    const auto refusals = TRY(lookout_.look_at_fence());
    refused = refused || refusals > refused_before;
    return changed || refused;
  };
  const auto answered_or = [&](auto over) {
    return [&answered, over]() -> Result<bool> {
      const bool was_over = over();  // first, so that what it did before is seen
      const auto now = answered();
      if (!now) return now;
      return *now || was_over;
    };
  };
  // Whoever keeps the lease comes last: `leasehold run` would end its command at once.
  const bool kept_back = frozen.worker.thaw_children_of(frozen.holder);
  history_.thawed(frozen.name);
  if (kept_back) {
    const auto alone = [&] { return !frozen.worker.anybody_below(frozen.holder); };
    const Status done = look_until(patience(), answered_or(alone));
    if (!done && !timed_out(done)) return fail(done.error());
    const Status gone = look_until(1s, [&]() -> Result<bool> { return alone(); });
    if (!gone && !timed_out(gone)) return fail(gone.error());
    frozen.worker.thaw();
  }
  const Status done =
      look_until(patience(), answered_or([&] { return frozen.worker.has_ended(); }));
  if (!done && !timed_out(done)) return fail(done.error());
  // A refusal may be followed by its exit status; another write may come after the first.
  const Status ended = look_until(1s, answered_or([&] { return frozen.worker.has_ended(); }));
  if (!ended && !timed_out(ended)) return fail(ended.error());
  const bool by_itself = frozen.worker.has_ended();
  const process::ExitStatus status = frozen.worker.end();
  if (const auto last = answered(); !last) return fail(last.error());
  if (changed) {
    history_.wrote_late(frozen.name);
    const auto content = lookout_.look_at_resource();
    if (content && succession.contents.contains(*content)) ++outcome_.updates_lost;
    return Answer::accepted;
  }
  // After a single change the same content may be a lost update.
  const bool said_no = by_itself && !status.success() && succession.changes >= kChanges;
  if (refused || (!refused_before.has_value() && said_no)) {
    history_.was_refused(frozen.name);
    return Answer::refused;
  }
  return by_itself && status.success() ? Answer::lost : Answer::unknown;
}

Result<Answer> UserDrill::cycle() {
  TRY(wait_until_free());
  const std::string names[] = {"worker-1", "worker-2"};
  const std::string& first = names[turn_ % 2];
  const std::string& second = names[(turn_ + 1) % 2];
  ++turn_;
  auto frozen = TRY(freeze_a_holder(first));
  if (!frozen) return Answer::missed;
  const auto succession = TRY(let_successor_work(second, *frozen));
  if (!succession) {
    history_.thawed(first);
    history_.gave_back(first, Kind::fail);
    return Answer::missed;
  }
  auto lease = TRY(stand_in());
  const auto answer = let_late_one_write(std::move(*frozen), *succession);
  history_.gave_back(first, Kind::fail);
  history_.gave_back(kDrill, Kind::ok);
  if (const auto released = lease.release(); !released) return fail(released.error());
  return answer;
}

// ---- the whole ---------------------------------------------------------------------------------

Status UserDrill::rehearse() {
  TRY(wait_until_free());
  const auto before = TRY(lookout_.look_at_resource());
  auto worker = TRY(start());
  bool held = false;
  bool changed = false;
  auto since = Clock::now();
  const Status seen = look_until(2 * kPatience, [&]() -> Result<bool> {
    const bool ended = worker.has_ended();
    const auto status = TRY(lookout_.look_at_lock());
    if (!held && status.holder()) since = Clock::now();
    held = held || status.holder();
    const auto content = TRY(lookout_.look_at_resource());
    changed = content != before;
    return (held && changed) || ended;
  });
  if (!seen && !timed_out(seen)) return seen;
  work_ = std::clamp<Millis>(std::chrono::floor<Millis>(Clock::now() - since), 1ms, 10min);
  const std::string tried = "the worker was tried without a fault: ";
  const Status ended = !held || !changed ? Status{} : look_until(patience(), [&]() -> Result<bool> {
    return worker.has_ended();
  });
  if (!ended && !timed_out(ended)) return ended;
  ends_by_itself_ = worker.has_ended();
  const process::ExitStatus status = worker.end();
  const std::string how = ends_by_itself_ ? "it " + status.describe() : "it did not end";
  if (ends_by_itself_ && !status.success()) {
    const bool refused = plan_.fence && status == process::ExitStatus::exited(76);
    return fail(ErrorCode::invalid,
                tried + how +
                    (refused ? "; if its fence knows tokens of another store, name that "
                               "store with --store"
                             : ""));
  }
  if (!held) {
    return fail(ErrorCode::invalid,
                tried + how + ", and was never seen to hold lock '" + plan_.lock + "' in " +
                    lookout_.client().store().address +
                    "; it must take the lock that LEASEHOLD_LOCK names in the store that "
                    "LEASEHOLD_STORE names, and work for some tenths of a second under it");
  }
  if (!changed) {
    return fail(
        ErrorCode::invalid,
        tried + how + ", and what --watch prints is the same before and after: " + plan_.watch);
  }
  return {};
}

void UserDrill::count(Answer answer) {
  switch (answer) {
    case Answer::refused:
      ++outcome_.cycles;
      ++outcome_.stale_refused;
      return;
    case Answer::accepted:
      ++outcome_.cycles;
      ++outcome_.stale_accepted;
      return;
    case Answer::lost:
      ++outcome_.cycles;
      ++outcome_.updates_lost;
      return;
    case Answer::unknown:
      ++outcome_.unfinished;
      ++outcome_.stale_unknown;
      return;
    case Answer::missed:
      ++outcome_.unfinished;
      return;
  }
}

Status UserDrill::try_cycles() {
  TRY(rehearse());
  const std::uint64_t most = 3 * plan_.cycles + 3;
  for (std::uint64_t tries = 0; tries < most && outcome_.cycles < plan_.cycles; ++tries) {
    const auto answer = TRY(cycle());
    count(answer);
  }
  return {};
}

std::vector<std::string> notes_on(const Outcome& outcome, bool fence_given) {
  std::vector<std::string> notes;
  if (!fence_given) {
    notes.emplace_back(
        "no --fence was given: a late write counts as refused if nothing changed and the worker "
        "ended with a failure");
  }
  if (outcome.stale_unknown > 0) {
    notes.push_back("after " + std::to_string(outcome.stale_unknown) +
                    " of the thaws nothing changed, and no refusal was " +
                    (fence_given ? "counted by the fence" : "told by the worker's exit status"));
  }
  if (outcome.unfinished > outcome.stale_unknown) {
    notes.push_back("tries that came to nothing: " +
                    std::to_string(outcome.unfinished - outcome.stale_unknown) +
                    "; the worker had written before it was frozen, or no "
                    "successor could work while it was");
  }
  return notes;
}

Result<Drilled> UserDrill::run() {
  outcome_.fence = "not given";
  if (plan_.fence) {
    const auto url = Url::parse(*plan_.fence);
    outcome_.fence = url ? url->redacted() : "?";
  }
  outcome_.faults = {{"pause", 0}};
  outcome_.seed = plan_.seed;
  outcome_.workers = 2;
  outcome_.locks = 1;
  outcome_.ttl = plan_.ttl;
  const Status done = try_cycles();
  const bool interrupted = !done && done.error().code == ErrorCode::cancelled;
  if (!done && !interrupted) return fail(done.error());
  outcome_.duration = Clock::now() - began_;
  outcome_.notes = notes_on(outcome_, plan_.fence.has_value());
  if (const auto passed_by = lookout_.nobody_entered(); passed_by && *passed_by) {
    outcome_.notes.emplace_back("your worker never entered the fence " + outcome_.fence +
                                ": nothing that it wrote was checked there");
  }
  if (interrupted) outcome_.notes.emplace_back("interrupted: judged by what had happened");
  Drilled drilled{std::move(outcome_), history_.take()};
  drilled.outcome.report = check(drilled.history);
  return drilled;
}

}  // namespace

Result<Drilled> drill_user_program(const UserPlan& plan, const Hooks& hooks) {
  rig::TempFolder folder;
  Plan where;
  where.store = plan.store;
  where.fence = "none";  // that of the user is only looked at
  const auto site = TRY(open_site(where, folder.path().string()));
  auto lookout = TRY(Lookout::open(plan, site.store_url));
  auto drilled = UserDrill(plan, hooks, std::move(lookout)).run();
  if (drilled) drilled->outcome.store = site.store_name;
  return drilled;
}

}  // namespace leasehold::drill
