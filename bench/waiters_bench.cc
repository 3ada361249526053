// What many waiters cost: 20,000 threads of one client, half as many completions, and 500 processes
// wait for one lock of a SQLite store while the same client holds a short lease of another lock.
//
//   waiters_bench [THREADS [PROCESSES]]
//
// The processes are this program again:  waiters_bench --waiter URL
#include <limits.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <latch>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "bench/report.h"
#include "leasehold/async.h"
#include "leasehold/client.h"
#include "leasehold/process/child.h"
#include "leasehold/process/io.h"
#include "leasehold/stores.h"
#include "rig/heap_in_use.h"
#include "rig/temp_folder.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;
using namespace std::chrono_literals;

constexpr std::size_t kFewThreads = 1000;
constexpr std::size_t kFewProcesses = 32;
constexpr int kRounds = 3;  // in turns, since the machine may be busy with something else
constexpr auto kIdle = 5s;

LockName crowded() {
  return must(LockName::parse("crowded"));
}

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

// One holder's time. Hand-offs last from just before a release to just after the next acquire.
struct Turn {
  std::int64_t token = 0;  // 0: it was not granted
  BootTime acquired;
  BootTime releasing;
};

Turn take_a_turn(Client& client) {
  auto lease = client.acquire_fenced(crowded(), {.ttl = 1min, .wait = 2min});
  if (!lease) return {};
  Turn turn{lease->token().number.value(), BootClock::now(), {}};
  turn.releasing = BootClock::now();
  (void)lease->release();
  return turn;
}

void append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

struct HandOffs {
  std::size_t wanted;
  std::size_t granted;
  std::vector<double> millis;

  double p50() { return percentile(millis, 0.5); }
  void operator+=(const HandOffs& more) {
    wanted += more.wanted;
    granted += more.granted;
    append(millis, more.millis);
  }
};

void report_granted(const std::string& who, const HandOffs& seen) {
  report({who + ": granted", std::to_string(seen.granted) + " of " + std::to_string(seen.wanted),
          "all", seen.granted == seen.wanted});
}

HandOffs hand_offs(std::vector<Turn> turns) {
  HandOffs seen{turns.size(), 0, {}};
  std::erase_if(turns, [](const Turn& turn) { return turn.token == 0; });
  seen.granted = turns.size();
  std::sort(turns.begin(), turns.end(),
            [](const Turn& one, const Turn& other) { return one.token < other.token; });
  for (std::size_t i = 1; i < turns.size(); ++i) {
    const std::chrono::duration<double, std::milli> span =
        turns[i].acquired - turns[i - 1].releasing;
    seen.millis.push_back(span.count());
  }
  return seen;
}

void await_waiters(Client& client, std::size_t count) {
  while (must(client.inspect(crowded(), {.store_timeout = 1min})).waiters.size() < count) {
    std::this_thread::sleep_for(100ms);
  }
}

// ---- threads -------------------------------------------------------------------------------

// A lease of three seconds in the same client, looked at again and again.
class Bystander {
 public:
  explicit Bystander(Client& client)
      : lease_(must(client.acquire("bystander", {.ttl = 3s}))), thread_([this] { watch(); }) {}
  ~Bystander() {
    done_ = true;
    thread_.join();
  }
  Bystander(const Bystander&) = delete;

  std::size_t looks_not_held() const { return not_held_; }
  double least_remaining() const {
    return std::chrono::duration<double>(least_remaining_.load()).count();
  }

 private:
  void watch() {
    while (!done_) {
      if (lease_.state() != LeaseState::held) ++not_held_;
      least_remaining_ = std::min<BootClock::duration>(least_remaining_, lease_.remaining());
      std::this_thread::sleep_for(5ms);
    }
  }

  Lease lease_;
  std::atomic<bool> done_ = false;
  std::atomic<std::size_t> not_held_ = 0;
  std::atomic<BootClock::duration> least_remaining_ = BootClock::duration::max();
  std::thread thread_;
};

// Threads whose stacks are small enough for 20,000 of them.
class Crowd {
 public:
  Crowd(Client& client, std::size_t count) : turns_(count) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN + 128 * 1024);
    for (Turn& turn : turns_) {
      auto seat = std::make_unique<Seat>(Seat{client, turn, *this});
      pthread_t thread{};
      if (pthread_create(&thread, &small, sit, seat.get()) != 0) stop("there are too few threads");
      seats_.push_back(std::move(seat));
      threads_.push_back(thread);
    }
    pthread_attr_destroy(&small);
  }
  std::vector<Turn> join() {
    while (done_ < turns_.size()) std::this_thread::sleep_for(10ms);
    door_.write.reset();
    for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
    return std::move(turns_);
  }

 private:
  struct Seat {
    Client& client;
    Turn& turn;
    Crowd& crowd;
  };
  // To end a thread takes the kernel longer than a hand-off, so they all stay until the last is
  // done.
  static void* sit(void* seat) {
    const auto& its = *static_cast<Seat*>(seat);
    its.turn = take_a_turn(its.client);
    ++its.crowd.done_;
    char nothing = 0;
    (void)!read(its.crowd.door_.read.get(), &nothing, 1);
    return nullptr;
  }

  std::vector<Turn> turns_;
  std::atomic<std::size_t> done_ = 0;
  process::Pipe door_ = process::make_pipe();  // closed to let them go
  std::vector<std::unique_ptr<Seat>> seats_;
  std::vector<pthread_t> threads_;
};

HandOffs threads_take_turns(Client& client, std::size_t count, bool look_at_idle) {
  auto lease = must(client.acquire(crowded(), {.ttl = 1min, .wait = 1min}));
  const BootTime began = BootClock::now();
  Crowd crowd(client, count);
  await_waiters(client, count);
  if (look_at_idle) {
    const std::chrono::duration<double> queueing = BootClock::now() - began;
    report({std::to_string(count) + " threads: until all wait", format(queueing.count(), "%.1f s"),
            ""});
    const double before = cpu_seconds();
    std::this_thread::sleep_for(kIdle);
    const double percent = (cpu_seconds() - before) / static_cast<double>(kIdle.count()) * 100;
    report({"CPU of their waiting, of one core", format(percent, "%.1f %%"), ""});
  }
  (void)must(lease.release());
  return hand_offs(crowd.join());
}

void measure_threads(const std::string& url, std::size_t count) {
  auto client = must(connect(url));
  const Bystander bystander(client);
  const std::string many = std::to_string(count) + " threads";
  std::vector<double> few;
  HandOffs seen{};
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 5; ++i) {
      append(few, threads_take_turns(client, kFewThreads, false).millis);
    }
    seen += threads_take_turns(client, count, round == 0);
  }

  report_granted(many, seen);
  const double few_p50 = percentile(few, 0.5);
  const double ratio = seen.p50() / few_p50;
  report({"hand-off to the next of 1000 threads, p50", format(few_p50, "%.3f ms"), ""});
  report({many + ": hand-off, p50", format(seen.p50(), "%.3f ms"), ""});
  report({many + ": hand-off, p99", format(percentile(seen.millis, 0.99), "%.3f ms"), ""});
  report({many + ": hand-off beside 1000", format(ratio, "%.2f x the time"), "<= 1.1 x",
          ratio <= 1.1});
  report({many + ": looks at a lease of 3 s that was not held",
          std::to_string(bystander.looks_not_held()), "0", bystander.looks_not_held() == 0});
  report({many + ": least time left to it", format(bystander.least_remaining(), "%.1f s"), "> 0 s",
          bystander.least_remaining() > 0});
}

// ---- completions ---------------------------------------------------------------------------

struct Completions {
  HandOffs seen;
  std::size_t bytes_of_each;
};

Completions completions_take_turns(Client& client, std::size_t count) {
  auto lease = must(client.acquire(crowded(), {.ttl = 1min, .wait = 1min}));
  const AsyncClient async(client);
  std::vector<Turn> turns(count);
  std::latch done(static_cast<std::ptrdiff_t>(count));
  const std::size_t before = rig::heap_in_use();
  for (Turn& turn : turns) {
    async.acquire_fenced(crowded(), {.ttl = 1min, .wait = 2min},
                         [&async, &turn, &done](Result<FencedLease> granted) {
                           if (!granted) return done.count_down();
                           turn = {granted->token().number.value(), BootClock::now(), {}};
                           turn.releasing = BootClock::now();
                           async.release(
                               std::move(*granted), {},
                               [&done](const Result<ReleaseOutcome>&) { done.count_down(); });
                         });
  }
  await_waiters(client, count);
  const std::size_t bytes = (rig::heap_in_use() - before) / count;
  (void)must(lease.release());
  done.wait();
  return {hand_offs(std::move(turns)), bytes};
}

void measure_completions(const std::string& url, std::size_t count) {
  auto client = must(connect(url));
  const Bystander bystander(client);
  const std::string many = std::to_string(count) + " completions";
  auto [seen, bytes] = completions_take_turns(client, count);
  for (int round = 1; round < kRounds; ++round) seen += completions_take_turns(client, count).seen;
  report_granted(many, seen);
  report({many + ": hand-off, p50", format(seen.p50(), "%.3f ms"), ""});
  report({many + ": hand-off, p99", format(percentile(seen.millis, 0.99), "%.3f ms"), ""});
  report({many + ": memory of each", std::to_string(bytes) + " bytes", "<= 4096 bytes",
          bytes <= 4096});
  report({many + ": looks at a lease of 3 s that was not held",
          std::to_string(bystander.looks_not_held()), "0", bystander.looks_not_held() == 0});
}

// ---- processes -----------------------------------------------------------------------------

int wait_as_process(const std::string& url) {
  auto client = must(connect(url, {.store_timeout = 1min}));
  const Turn turn = take_a_turn(client);
  std::cout << turn.token << " " << turn.acquired.time_since_epoch().count() << " "
            << turn.releasing.time_since_epoch().count() << std::endl;
  return 0;
}

process::Child start_waiter(const std::string& url) {
  process::Command command;
  command.argv = {"/proc/self/exe", "--waiter", url};
  command.out = process::Piped{};
  command.parent_death_signal = SIGKILL;
  return must(process::Child::start(command));
}

Turn read_turn(process::Child& waiter) {
  std::istringstream line(process::read_all(waiter.out().get()));
  BootClock::rep token = 0;
  BootClock::rep acquired = 0;
  BootClock::rep releasing = 0;
  const bool complete = static_cast<bool>(line >> token >> acquired >> releasing);
  if (!waiter.wait().success() || !complete) return {};
  return {token, BootTime(BootClock::duration(acquired)), BootTime(BootClock::duration(releasing))};
}

HandOffs processes_take_turns(Client& client, const std::string& url, std::size_t count) {
  auto lease = must(client.acquire(crowded(), {.ttl = 1min, .wait = 1min}));
  std::vector<process::Child> waiters;
  for (std::size_t i = 0; i < count; ++i) waiters.push_back(start_waiter(url));
  await_waiters(client, count);
  (void)must(lease.release());
  std::vector<Turn> turns;
  for (auto& waiter : waiters) turns.push_back(read_turn(waiter));
  return hand_offs(std::move(turns));
}

void measure_processes(const std::string& url, std::size_t count) {
  auto client = must(connect(url));
  const Bystander bystander(client);
  const std::string many = std::to_string(count) + " processes";
  std::vector<double> few;
  HandOffs seen{};
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 5; ++i) {
      append(few, processes_take_turns(client, url, kFewProcesses).millis);
    }
    seen += processes_take_turns(client, url, count);
  }

  report_granted(many, seen);
  const double few_p50 = percentile(few, 0.5);
  report({"hand-off to the next of 32 processes, p50", format(few_p50, "%.3f ms"), ""});
  report({many + ": hand-off, p50", format(seen.p50(), "%.3f ms"), ""});
  report({many + ": hand-off, p99", format(percentile(seen.millis, 0.99), "%.3f ms"), ""});
  const double ratio = seen.p50() / few_p50;
  report(
      {many + ": hand-off beside 32", format(ratio, "%.2f x the time"), "<= 1.1 x", ratio <= 1.1});
  report({many + ": looks at a lease of 3 s that was not held",
          std::to_string(bystander.looks_not_held()), "0", bystander.looks_not_held() == 0});
}

}  // namespace

int main(int argc, char** argv) {
  register_stores();
  if (argc == 3 && std::string(argv[1]) == "--waiter") return wait_as_process(argv[2]);
  const std::size_t threads = argc > 1 ? std::stoul(argv[1]) : 20'000;
  const std::size_t processes = argc > 2 ? std::stoul(argv[2]) : 500;
  const rig::TempFolder folder;
  const std::string url = "sqlite:" + folder.file("locks.db");
  measure_threads(url, threads);
  measure_completions(url, threads / 2);
  measure_processes(url, processes);
  return 0;
}
