#include "made_up.h"

#include <stdexcept>

namespace leasehold::drill {
namespace {

using std::int64_t;

constexpr int64_t kMillisecond = 1'000'000;

class Lock {
 public:
  Lock(MadeUp& into, const MadeUpPlan& plan, unsigned number, int64_t begin)
      : made_(into),
        plan_(plan),
        name_(plan.lock_prefix + std::to_string(number)),
        number_(number),
        now_(begin),
        token_(plan.first_token - 1) {}

  // One after the other takes it, reads, writes and gives it back; then one is frozen.
  void cycle(int64_t length) {
    const int64_t step = length / (plan_.quiet_per_cycle + 10);
    for (unsigned i = 0; i < plan_.quiet_per_cycle; ++i) quiet(step);
    const unsigned slow = next_worker(), quick = next_worker();
    const Grant late = take(slow, step * 2);
    add(worker(slow), Kind::fault, Operation::pause, {});
    pass(step * 3);
    const Grant after = take(quick, step * 8);
    pass(step);
    write(after);
    pass(step);
    add(worker(slow), Kind::heal, Operation::pause, {});
    pass(step / 4);
    late_write(late);
    give_back(slow, Kind::fail, late);
    pass(step);
    give_back(quick, Kind::ok, after);
    pass(step);
    ++made_.outcome.cycles;
    ++made_.outcome.faults.at(0).times;
  }

 private:
  struct Grant {
    int64_t token;
    RequestRef request;
    uint64_t read;
  };

  std::string worker(unsigned index) const {
    return "worker-" + std::to_string(number_ * plan_.workers + index);
  }
  unsigned next_worker() { return turn_++ % plan_.workers; }
  void pass(int64_t span) { now_ += span; }

  void quiet(int64_t step) {
    const unsigned who = next_worker();
    const Grant grant = take(who, step * 4);
    pass(step / 2);
    write(grant);
    pass(step / 4);
    give_back(who, Kind::ok, grant);
    pass(step / 4);
  }

  Grant take(unsigned who, int64_t ttl) {
    RequestId::Bytes id{};
    for (std::size_t i = 0; i < 8; ++i) id[i] = static_cast<uint8_t>(requests_ >> (8 * i));
    id[15] = static_cast<uint8_t>(number_);
    ++requests_;
    Grant grant{++token_, made_.history.request(RequestId(id)), value_};
    tell(who, Kind::invoke, Operation::acquire, {0, grant.request, 0});
    tell(who, Kind::ok, Operation::acquire, grant, now_ + ttl);
    at_resource(Kind::accept, Operation::read, grant, value_, 0);
    return grant;
  }

  void give_back(unsigned who, Kind answer, const Grant& grant) {
    tell(who, Kind::invoke, Operation::release, grant);
    tell(who, answer, Operation::release, grant);
  }

  void write(const Grant& grant) {
    const uint64_t base = std::exchange(value_, ++written_);
    at_resource(Kind::accept, Operation::write, grant, value_, base);
    ++made_.outcome.writes;
  }

  void late_write(const Grant& grant) {
    if (plan_.fenced) {
      at_resource(Kind::refuse, Operation::write, grant, 0, 0);
      ++made_.outcome.stale_refused;
      return;
    }
    value_ = ++written_;
    at_resource(Kind::accept, Operation::write, grant, value_, grant.read);
    ++made_.outcome.writes;
    ++made_.outcome.stale_accepted;
    ++made_.outcome.updates_lost;
  }

  void tell(unsigned who, Kind kind, Operation operation, const Grant& grant,
            int64_t deadline = 0) {
    Record record;
    record.token = grant.token;
    record.request = grant.request;
    record.deadline = deadline;
    add(worker(who), kind, operation, record);
  }

  void at_resource(Kind kind, Operation operation, const Grant& grant, uint64_t value,
                   uint64_t base) {
    Record record;
    record.token = grant.token;
    record.request = grant.request;
    record.value = value;
    record.base = base;
    add("resource of " + name_, kind, operation, record);
  }

  void add(const std::string& process, Kind kind, Operation operation, Record record) {
    record.time = now_++;
    record.process = made_.history.process(process);
    record.kind = kind;
    record.operation = operation;
    if (operation != Operation::pause) record.lock = made_.history.lock(name_);
    StoreId::Bytes id{};
    id[0] = 1;
    record.store = made_.history.store(StoreId(id));
    if (!made_.history.append(record)) throw std::logic_error("a made-up record is wrong");
  }

  MadeUp& made_;
  const MadeUpPlan& plan_;
  const std::string name_;
  const unsigned number_;
  int64_t now_;
  int64_t token_;
  unsigned turn_ = 0;
  uint64_t requests_ = 1;
  uint64_t value_ = 0;
  uint64_t written_ = 0;
};

}  // namespace

MadeUp made_up(const MadeUpPlan& plan) {
  MadeUp made;
  Outcome& outcome = made.outcome;
  outcome.store = "sqlite:/tmp/drill/locks.db";
  outcome.fence = plan.fenced ? "sqlite:/tmp/drill/data.db" : "none";
  outcome.faults = {{"pause", 0}};
  outcome.seed = 7;
  outcome.duration = std::chrono::seconds(plan.seconds);
  outcome.workers = plan.workers;
  outcome.locks = plan.locks;
  const int64_t cycles = int64_t{plan.seconds} * plan.cycles_per_second / plan.locks;
  const int64_t length = int64_t{plan.seconds} * 1000 * kMillisecond / cycles;
  outcome.ttl = std::chrono::milliseconds(length / 5 / kMillisecond);
  for (unsigned number = 0; number < plan.locks; ++number) {
    Lock lock(made, plan, number, 1'000'000'000 + number * (length / plan.locks));
    for (int64_t i = 0; i < cycles; ++i) lock.cycle(length);
  }
  outcome.report = check(made.history);
  return made;
}

}  // namespace leasehold::drill
