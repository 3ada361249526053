// How long a released lock takes to reach the next waiter in another process, with 32 processes
// waiting, and what their waiting costs while nothing happens.
//
// The waiters are this program again:  handoff_bench --waiter URL ROUNDS
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <sstream>
#include <thread>

#include "bench/report.h"
#include "leasehold/client.h"
#include "leasehold/process/child.h"
#include "leasehold/stores.h"
#include "rig/temp_folder.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;
using namespace std::chrono_literals;

constexpr int kWaiters = 32;
constexpr const char* kLock = "handoff";

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

FencedLease take(Client& client) {
  return must(client.acquire_fenced(kLock, {.ttl = 1min, .wait = 5min}));
}

// Prints "token, when acquire returned, when release was called" of every round.
int wait_and_pass_on(const std::string& url, int rounds) {
  auto client = must(connect(url));
  for (int round = 0; round < rounds; ++round) {
    auto lease = take(client);
    const std::int64_t acquired = now_ns();
    std::this_thread::sleep_for(10ms);
    const std::int64_t releasing = now_ns();
    (void)must(lease.release());
    std::cout << lease.token().number.value() << " " << acquired << " " << releasing << std::endl;
    std::this_thread::sleep_for(3ms);  // queueing again is not part of the hand-off
  }
  return 0;
}

process::Child start_waiter(const std::string& url, int rounds) {
  process::Command command;
  command.argv = {"/proc/self/exe", "--waiter", url, std::to_string(rounds)};
  command.out = process::Piped{};
  command.parent_death_signal = SIGKILL;
  return must(process::Child::start(command));
}

double cpu_seconds(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) {
    stop("a waiter has died");
  }
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

double cpu_seconds(const std::vector<process::Child>& children) {
  double sum = 0;
  for (const auto& child : children) sum += cpu_seconds(child.pid());
  return sum;
}

void measure_idle(const std::vector<process::Child>& waiters, std::chrono::seconds span) {
  const double before = cpu_seconds(waiters);
  std::this_thread::sleep_for(span);
  const double percent = (cpu_seconds(waiters) - before) / static_cast<double>(span.count()) * 100;
  report({"CPU of 32 processes waiting, of one core", format(percent, "%.2f %%"), "< 1 %",
          percent < 1});
}

void measure_handoffs(std::vector<process::Child>& waiters) {
  struct Turn {
    std::int64_t acquired;
    std::int64_t releasing;
  };
  std::map<std::int64_t, Turn> turns;  // by token: the order of the grants
  for (auto& waiter : waiters) {
    std::istringstream lines(process::read_all(waiter.out().get()));
    std::int64_t token = 0;
    for (Turn turn{}; lines >> token >> turn.acquired >> turn.releasing;) turns[token] = turn;
    if (!waiter.wait().success()) stop("a waiter failed");
  }
  std::vector<double> millis;
  // Towards the end there are fewer than 32 waiters: those turns do not count.
  const std::size_t full = turns.size() - kWaiters;
  for (auto it = turns.begin(); std::next(it) != turns.end() && millis.size() < full; ++it) {
    millis.push_back(static_cast<double>(std::next(it)->second.acquired - it->second.releasing) *
                     1e-6);
  }
  const double p50 = percentile(millis, 0.5);
  report(
      {"hand-off to the next of 32 processes, p50", format(p50, "%.3f ms"), "<= 1 ms", p50 <= 1});
  report({"hand-off, p90", format(percentile(millis, 0.9), "%.3f ms"), ""});
  report({"hand-off, p99", format(percentile(millis, 0.99), "%.3f ms"), ""});
}

}  // namespace

int main(int argc, char** argv) {
  register_stores();
  if (argc == 4 && std::string(argv[1]) == "--waiter") {
    return wait_and_pass_on(argv[2], std::stoi(argv[3]));
  }
  const int rounds = argc == 2 ? std::stoi(argv[1]) : 20;
  const rig::TempFolder folder;
  const std::string url = "sqlite:" + folder.file("locks.db");
  auto client = must(connect(url));
  auto lease = take(client);
  std::vector<process::Child> waiters;
  for (int i = 0; i < kWaiters; ++i) waiters.push_back(start_waiter(url, rounds));
  while (must(client.inspect(must(LockName::parse(kLock)))).waiters.size() < kWaiters) {
    std::this_thread::sleep_for(10ms);
  }
  measure_idle(waiters, 5s);
  waiters.push_back(start_waiter(url, rounds));  // the 33rd: 32 wait while one holds
  std::this_thread::sleep_for(500ms);
  (void)must(lease.release());
  measure_handoffs(waiters);
  return 0;
}
