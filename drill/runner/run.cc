#include "run.h"

#include <poll.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "arena.h"
#include "assemble.h"
#include "chance.h"
#include "kit/try.h"
#include "leasehold/drill/history_file.h"
#include "ledger.h"
#include "order.h"
#include "rig/temp_folder.h"
#include "server_nemesis.h"
#include "site.h"
#include "worker.h"
#include "worker_process.h"

namespace leasehold::drill {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kLookAround = 50ms;
constexpr auto kTellProgress = 250ms;
constexpr auto kDrain = 20s;

class Run {
 public:
  Run(const Plan& plan, const Hooks& hooks) : plan_(plan), hooks_(hooks), chance_(plan.seed) {}

  Result<Drilled> run();

 private:
  Status open();
  Result<WorkerProcess> start_worker(const std::string& lock, unsigned number);
  std::vector<std::string> all_resources() const;
  Status play();
  Status listen_until(Clock::time_point end);
  bool is_over(Clock::time_point end);
  void tell_progress();
  Result<std::uint64_t> last_value(const std::string& resource);
  Result<std::unordered_map<std::string, std::uint64_t>> last_values();
  Result<Drilled> judge_it();
  Outcome describe() const;
  std::string errors() const;
  std::string lock_name(unsigned number) const {
    return site_->lock_prefix + std::to_string(number + 1);
  }

  const Plan& plan_;
  const Hooks& hooks_;
  Chance chance_;
  Ledger ledger_;
  rig::TempFolder folder_;
  std::optional<Site> site_;
  std::optional<ServerNemesis> nemesis_;
  std::vector<std::string> histories_;
  std::deque<Arena> arenas_;
  Clock::time_point began_{};
  Clock::time_point told_{};
  std::chrono::nanoseconds took_{};
  bool interrupted_ = false;
};

Status Run::open() {
  auto site = TRY(open_site(plan_, folder_.path().string()));
  site_.emplace(std::move(site));
  for (const std::string& name : all_resources()) {
    TRY(open_resource({site_->fence_url, name, site_->fencing, true}));
  }
  const auto start = [this](const std::string& lock, unsigned number) {
    return start_worker(lock, number);
  };
  for (unsigned i = 0; i < plan_.locks; ++i) {
    arenas_.emplace_back(lock_name(i), plan_, chance_, ledger_, start);
    TRY(arenas_.back().open());
  }
  return {};
}

std::vector<std::string> Run::all_resources() const {
  std::vector<std::string> all;
  for (unsigned i = 0; i < plan_.locks; ++i) {
    for (std::string& name : resource_names(plan_, lock_name(i))) all.push_back(std::move(name));
  }
  return all;
}

Result<WorkerProcess> Run::start_worker(const std::string& lock, unsigned of_lock) {
  const std::string number = std::to_string(histories_.size() + 1);
  const std::string name = "worker-" + number;
  const std::int64_t mode = mode_of_worker(plan_, of_lock).code();
  histories_.push_back(folder_.file(name + ".history"));
  constexpr const char* kFencings[] = {"token", "claim", "none"};
  return WorkerProcess::start(
      name, {plan_.program,  "drill-worker",
             "--fencing",    kFencings[static_cast<int>(site_->fencing)],
             "--lock",       lock,
             "--name",       name,
             "--history",    histories_.back(),
             "--ttl",        std::to_string(site_->ttl.count()) + "ms",
             "--use",        std::string(to_string(plan_.use)),
             "--mode",       std::to_string(mode),
             "--partitions", std::to_string(partitions_of(plan_)),
             "--number",     number},
      {{kStoreVariable, site_->store_url}, {kResourceVariable, site_->fence_url}},
      folder_.file("errors"));
}

bool Run::is_over(Clock::time_point end) {
  if (hooks_.interrupted && hooks_.interrupted()) interrupted_ = true;
  if (interrupted_ || Clock::now() >= end) return true;
  return plan_.cycles > 0 && ledger_.cycles.full >= plan_.cycles;
}

void Run::tell_progress() {
  const auto now = Clock::now();
  if (!hooks_.progress || now - told_ < kTellProgress) return;
  told_ = now;
  Progress progress;
  progress.elapsed = now - began_;
  progress.cycles = ledger_.cycles.full;
  progress.refused = ledger_.cycles.refused;
  progress.accepted = ledger_.cycles.accepted;
  for (const Fault fault : plan_.faults) progress.faults += ledger_.times(fault);
  hooks_.progress(progress);
}

// One round: waits for what a worker says, at most until `end`.
Status Run::listen_until(Clock::time_point end) {
  std::vector<pollfd> events{{hooks_.wake, POLLIN, 0}};
  std::vector<std::pair<Arena*, std::size_t>> whose;
  for (Arena& arena : arenas_) {
    for (std::size_t i = 0; i < arena.workers().size(); ++i) {
      events.push_back({arena.workers()[i].fd(), POLLIN, 0});
      whose.emplace_back(&arena, i);
    }
  }
  const auto left = std::min<Clock::duration>(end - Clock::now(), kLookAround);
  const auto millis = std::chrono::ceil<Millis>(std::max<Clock::duration>(left, 0ms));
  poll(events.data(), events.size(), static_cast<int>(millis.count()));
  for (std::size_t i = 0; i < whose.size(); ++i) {
    if (events[i + 1].revents == 0) continue;
    TRY(whose[i].first->hear(whose[i].second));
  }
  for (Arena& arena : arenas_) {
    TRY(arena.look_at_clock());
  }
  nemesis_->look_at_clock();
  tell_progress();
  return {};
}

Status Run::play() {
  began_ = Clock::now();
  nemesis_.emplace(plan_, *site_, site_->ttl, chance_, ledger_);
  const auto end = began_ + plan_.duration;
  while (!is_over(end)) {
    TRY(listen_until(end));
  }
  took_ = Clock::now() - began_;
  // Cycles that have begun are brought to their end.
  for (Arena& arena : arenas_) arena.calm_down();
  nemesis_->calm_down();
  const auto drained = Clock::now() + kDrain;
  const auto busy = [](const Arena& arena) { return arena.in_cycle(); };
  while (Clock::now() < drained && std::any_of(arenas_.begin(), arenas_.end(), busy)) {
    TRY(listen_until(drained));
  }
  for (Arena& arena : arenas_) {
    for (WorkerProcess& worker : arena.workers()) worker.kill();
  }
  return {};
}

// A server that was hit may need a while until it answers again.
Result<std::uint64_t> Run::last_value(const std::string& name) {
  const auto give_up = Clock::now() + kDrain;
  for (;;) {
    auto resource = open_resource({site_->fence_url, name, site_->fencing});
    auto value = resource ? (*resource)->peek() : fail(resource.error());
    if (value || Clock::now() > give_up) return value;
    std::this_thread::sleep_for(kLookAround);
  }
}

Result<std::unordered_map<std::string, std::uint64_t>> Run::last_values() {
  std::unordered_map<std::string, std::uint64_t> values;
  for (const std::string& name : all_resources()) {
    auto value = TRY(last_value(name));
    values[name] = value;
  }
  return values;
}

Outcome Run::describe() const {
  Outcome outcome;
  outcome.store = site_->store_name;
  outcome.fence = site_->fence_name;
  outcome.fence_by_claim = site_->fencing == Fencing::claim;
  for (const Fault fault : plan_.faults) {
    outcome.faults.push_back({std::string(to_string(fault)), ledger_.times(fault)});
  }
  outcome.mode = to_string(plan_.use);
  outcome.readers = readers_of(plan_);
  outcome.permits = permits_of(plan_);
  outcome.partitions = partitions_of(plan_);
  outcome.late_writes = ledger_.late_writes();
  outcome.reads_meanwhile = ledger_.reads_meanwhile;
  outcome.seed = plan_.seed;
  outcome.duration = took_;
  outcome.workers = plan_.workers;
  outcome.locks = plan_.locks;
  for (const Arena& arena : arenas_) outcome.ttl = std::max(outcome.ttl, arena.ttl());
  outcome.cycles = ledger_.cycles.full;
  outcome.unfinished = ledger_.cycles.unfinished;
  outcome.stale_refused = ledger_.cycles.refused;
  outcome.stale_accepted = ledger_.cycles.accepted;
  outcome.stale_unknown = ledger_.cycles.unknown;
  if (!site_->failover_note.empty() && ledger_.times(Fault::failover) > 0) {
    outcome.notes.push_back(site_->failover_note);
  }
  outcome.interrupted = interrupted_;
  if (interrupted_) outcome.notes.emplace_back("interrupted: judged by what had happened");
  return outcome;
}

Result<Drilled> Run::judge_it() {
  auto last = TRY(last_values());
  HistoryReader reader;
  for (const std::string& file : histories_) {
    std::error_code missing;
    const auto size = std::filesystem::file_size(file, missing);
    if (missing || size == 0) continue;  // killed before it wrote anything
    TRY(reader.read(file));
  }
  History clients = reader.take();
  const ResourceLog log = order_accesses(clients, last);
  auto history = TRY(assemble(clients, log, ledger_.blows()));
  Drilled drilled{describe(), std::move(history)};
  drilled.outcome.writes = log.writes;
  drilled.outcome.updates_lost = log.lost;
  drilled.outcome.foreign_values = log.foreign_values;
  drilled.outcome.report = check(drilled.history);
  return drilled;
}

std::string Run::errors() const {
  std::ifstream file(folder_.file("errors"));
  std::string text(std::istreambuf_iterator<char>(file), {});
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

Result<Drilled> Run::run() {
  TRY(open());
  if (auto done = play(); !done) {
    Error error = done.error();
    if (error.store_words.empty()) error.store_words = errors();
    return fail(std::move(error));
  }
  return judge_it();
}

}  // namespace

Result<Drilled> run_drill(const Plan& plan, const Hooks& hooks) {
  Plan possible = plan;
  std::string left_out;
  if (plan.faults_where_possible) left_out = leave_out_impossible_faults(possible);
  try {
    auto drilled = Run(possible, hooks).run();
    if (drilled && !left_out.empty()) drilled->outcome.notes.push_back(std::move(left_out));
    return drilled;
  } catch (const std::runtime_error& broken) {  // a server that does not start, or no folder
    return fail(ErrorCode::unavailable, "a server of the drill is not as it should be",
                broken.what());
  }
}

}  // namespace leasehold::drill
