#include "worker.h"

#include <unistd.h>

#include <iostream>
#include <map>
#include <thread>
#include <variant>

#include "kit/try.h"
#include "leasehold/process/io.h"
#include "ledger.h"
#include "plan.h"

namespace leasehold::drill {
namespace {

using namespace std::chrono_literals;

constexpr Millis kLongestWait = 5s;
constexpr Millis kStoreTimeout = 2s;
constexpr auto kLongestWrite = 5s;
constexpr auto kPauseAfterFailure = 20ms;

void say(const std::string& what) {
  process::write_all(STDOUT_FILENO, what + "\n");
}

// A lease with a token where the store has them.
class Holding {
 public:
  explicit Holding(FencedLease lease) : lease_(std::move(lease)) {}
  explicit Holding(Lease lease) : lease_(std::move(lease)) {}

  Lease& lease() {
    return std::visit([](auto& it) -> Lease& { return it; }, lease_);
  }
  Pass pass() {
    const auto* fenced = std::get_if<FencedLease>(&lease_);
    return {fenced ? std::optional(fenced->token()) : std::nullopt, lease().request()};
  }

 private:
  std::variant<FencedLease, Lease> lease_;
};

class Worker {
 public:
  Worker(const WorkerPlan& plan, HistoryWriter history)
      : plan_(plan), history_(std::move(history)), value_(plan.first_value) {}

  Status run();

 private:
  Status connect_both();
  Status turn();
  Status work(Holding& holding, std::int64_t granted_at);
  void look(std::int64_t granted_at);
  Result<Kind> write(const Pass& pass, Record writing);
  Status give_back(Holding& holding);
  Result<Holding> take();

  Record record(Kind kind, Operation operation, const std::optional<Pass>& pass) const {
    Record it;
    it.time = now();
    it.kind = kind;
    it.operation = operation;
    it.set_mode(plan_.mode, slot_);
    if (pass && pass->token) it.token = pass->token->number.value();
    return it;
  }
  Status put(const Record& it, const std::optional<Pass>& pass) {
    HistoryWriter::Names names{.lock = plan_.lock};
    if (pass) names.request = pass->request;
    if (pass && pass->token) names.store = pass->token->lineage.store;
    return history_.write(it, names);
  }
  Status put(Kind kind, Operation operation, const Pass& pass) {
    return put(record(kind, operation, pass), pass);
  }

  // How an access ended, for the history. Only a refusal is known not to have been done.
  template <class T>
  static Kind kind_of(const Result<T>& result) {
    if (result) return Kind::ok;
    return result.error().code == ErrorCode::fenced_out ? Kind::fail : Kind::unknown;
  }
  // A connection to the resource that failed once is not used again.
  template <class T>
  void reopen_after(const Result<T>& result) {
    if (!result && result.error().code != ErrorCode::fenced_out) resources_.erase(slot_);
  }
  Resource& resource() { return *resources_.at(slot_); }

  const WorkerPlan& plan_;
  HistoryWriter history_;
  std::uint64_t value_;
  std::optional<Client> client_;
  std::optional<Slot> slot_;  // of its permit, while it has one
  std::map<std::optional<Slot>, std::unique_ptr<Resource>> resources_;
};

Status Worker::connect_both() {
  if (!client_) {
    auto owner = TRY(OwnerLabel::parse(plan_.name));
    auto client = TRY(connect(plan_.store, {.owner = std::move(owner)}));
    client_.emplace(std::move(client));
  }
  if (resources_.contains(slot_) || (plan_.mode.is_permit() && !slot_)) return {};
  ResourceChoice choice = plan_.resource;
  choice.name = resource_name(plan_.lock, slot_);
  auto resource = TRY(open_resource(choice));
  resources_.emplace(slot_, std::move(resource));
  return {};
}

Result<Holding> Worker::take() {
  const AcquireOptions options{
      .ttl = plan_.ttl, .wait = kLongestWait, .store_timeout = kStoreTimeout, .mode = plan_.mode};
  if (client_->store().guarantee == Guarantee::correctness) {
    auto lease = TRY(client_->acquire_fenced(plan_.lock, options));
    return Holding(std::move(lease));
  }
  auto lease = TRY(client_->acquire(plan_.lock, options));
  return Holding(std::move(lease));
}

Status Worker::turn() {
  // The request id is known with the answer only, so the beginning is written down then.
  slot_.reset();
  Record asked = record(Kind::invoke, Operation::acquire, std::nullopt);
  auto holding = take();
  if (!holding) {
    const bool waited = holding.error().code == ErrorCode::timeout;
    if (!waited) std::this_thread::sleep_for(kPauseAfterFailure);
    return {};
  }
  const Pass pass = holding->pass();
  slot_ = holding->lease().slot();
  TRY(put(asked, pass));
  Record granted = record(Kind::ok, Operation::acquire, pass);
  granted.deadline = holding->lease().deadline().time_since_epoch().count();
  TRY(put(granted, pass));
  if (connect_both()) {
    if (plan_.mode == Mode::shared()) {
      look(granted.time);
    } else {
      TRY(work(*holding, granted.time));
    }
  }
  return give_back(*holding);
}

void Worker::look(std::int64_t granted_at) {
  // By a claim nobody looks without taking it from whoever has it.
  if (plan_.resource.fencing != Fencing::claim) {
    const auto seen = resource().peek();
    reopen_after(seen);
    if (!seen) return;
  }
  say("read " + std::to_string(granted_at));
}

Status Worker::work(Holding& holding, std::int64_t granted_at) {
  const Pass pass = holding.pass();
  TRY(put(Kind::invoke, Operation::read, pass));
  const auto read = resource().enter(pass);
  Record entered = record(kind_of(read), Operation::read, pass);
  entered.value = read.value_or(0);
  TRY(put(entered, pass));
  reopen_after(read);
  if (!read) {
    say("late");
    return {};
  }
  say("entered " + std::to_string(granted_at) + " " +
      std::to_string(holding.lease().ttl().count()) + " " +
      std::to_string(pass.token ? pass.token->number.value() : 0) +
      (slot_ ? " " + std::to_string(slot_->number) : ""));

  // The nemesis strikes here, if it does.
  std::string go;
  if (!std::getline(std::cin, go)) return {};

  // Deliberately does not look at its lease: whoever is paused after the last look cannot.
  Record writing = record(Kind::invoke, Operation::write, pass);
  writing.value = ++value_;
  writing.base = *read;
  writing.sequence = 1;
  const auto how = TRY(write(pass, writing));
  say(how == Kind::ok ? "wrote" : how == Kind::fail ? "refused" : "unknown");
  return {};
}

// Again, with the same token and the same value, as long as there is no answer: a stale holder does
// not stop because its connection broke. A claim does not outlive its connection.
Result<Kind> Worker::write(const Pass& pass, Record writing) {
  const BootTime give_up = BootClock::now() + kLongestWrite;
  for (;;) {
    writing.kind = Kind::invoke;
    writing.time = now();
    TRY(put(writing, pass));
    const auto written = resource().write(pass, writing.value);
    writing.kind = kind_of(written);
    writing.time = now();
    TRY(put(writing, pass));
    reopen_after(written);
    if (writing.kind != Kind::unknown) return writing.kind;
    if (plan_.resource.fencing == Fencing::claim) return writing.kind;
    while (!connect_both()) {
      if (BootClock::now() > give_up) return writing.kind;
      std::this_thread::sleep_for(kPauseAfterFailure);
    }
    if (BootClock::now() > give_up) return writing.kind;
  }
}

Status Worker::give_back(Holding& holding) {
  const Pass pass = holding.pass();
  TRY(put(Kind::invoke, Operation::release, pass));
  const auto released = holding.lease().release(kStoreTimeout);
  const Kind kind = !released                               ? Kind::unknown
                    : *released == ReleaseOutcome::released ? Kind::ok
                                                            : Kind::fail;
  return put(kind, Operation::release, pass);
}

Status Worker::run() {
  while (std::cin) {
    if (const auto ready = connect_both(); !ready) {
      const ErrorCode code = ready.error().code;
      if (code == ErrorCode::invalid || code == ErrorCode::unsupported) return ready;
      std::this_thread::sleep_for(kPauseAfterFailure);
      continue;
    }
    TRY(turn());
  }
  return {};
}

}  // namespace

Status run_worker(const WorkerPlan& plan) {
  auto history = TRY(HistoryWriter::open(plan.history, plan.name, current_boot()));
  return Worker(plan, std::move(history)).run();
}

}  // namespace leasehold::drill
