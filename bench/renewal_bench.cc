// One client keeps 100,000 leases with a TTL of 30 s alive, for longer than two TTLs.
//
//   renewal_bench [LEASES [SECONDS]]      a shorter form for a quick look: renewal_bench 10000 12
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>
#include <vector>

#include "bench/report.h"
#include "leasehold/client.h"
#include "leasehold/stores.h"
#include "rig/temp_folder.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;
using namespace std::chrono_literals;

double seconds(BootClock::duration length) {
  return std::chrono::duration<double>(length).count();
}

double cpu_seconds(clockid_t clock) {
  timespec used{};
  clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

struct Seen {
  std::size_t renewals = 0;
  std::size_t not_held = 0;  // lost or uncertain at any look
  BootClock::duration least_remaining = BootClock::duration::max();
};

// Renewals are ten seconds apart: of looks that are one second apart, each sees a renewal once.
void look(const std::vector<Lease>& leases, std::vector<BootTime>& deadlines, Seen& seen) {
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const Lease& lease = leases[i];
    const bool held = lease.state() == LeaseState::held && !lease.lost().stop_requested();
    if (!held) ++seen.not_held;
    seen.least_remaining = std::min(seen.least_remaining, lease.remaining());
    const BootTime deadline = lease.deadline();
    if (deadline != deadlines[i]) ++seen.renewals;
    deadlines[i] = deadline;
  }
}

}  // namespace

int main(int argc, char** argv) {
  register_stores();
  const std::size_t count = argc > 1 ? std::stoul(argv[1]) : 100'000;
  const auto span = std::chrono::seconds(argc > 2 ? std::stol(argv[2]) : 65);
  const std::string many = std::to_string(count) + " leases of 30 s";

  const rig::TempFolder folder;
  auto client = must(connect("sqlite:" + folder.file("locks.db")));
  std::vector<Lease> leases;
  leases.reserve(count);
  const BootTime begin = BootClock::now();
  for (std::size_t i = 0; i < count; ++i) {
    leases.push_back(must(client.acquire("job/" + std::to_string(i), {.ttl = 30s})));
  }
  report({many + ": to acquire them all", format(seconds(BootClock::now() - begin), "%.1f s"), ""});

  std::vector<BootTime> deadlines;
  for (const Lease& lease : leases) deadlines.push_back(lease.deadline());
  Seen seen;
  const BootTime held_since = BootClock::now();
  const auto cpu_of_others = [] {
    return cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  };
  const double cpu_before = cpu_of_others();
  while (BootClock::now() < held_since + span) {
    std::this_thread::sleep_for(1s);
    look(leases, deadlines, seen);
  }
  const double held_for = seconds(BootClock::now() - held_since);
  const double cpu = (cpu_of_others() - cpu_before) / held_for * 100;
  report({many + ": lost or uncertain in " + format(held_for, "%.0f s"),
          std::to_string(seen.not_held), "0", seen.not_held == 0});
  report({many + ": least time left to any", format(seconds(seen.least_remaining), "%.1f s"),
          "> 0 s", seen.least_remaining > 0s});
  report({many + ": renewals", format(static_cast<double>(seen.renewals) / held_for, "%.0f per s"),
          ""});
  report({many + ": CPU, of one core", format(cpu, "%.1f %%"), ""});
  std::cout.flush();
  _exit(0);  // releasing them one by one is not measured
}
