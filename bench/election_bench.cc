// How long nobody leads after a leader has died: from SIGKILL to the return of campaign() in
// another process.
//
//   election_bench [STORE] [--quick]
//
// The candidates are this program again:  election_bench --candidate URL LOCK
#include <unistd.h>

#include <chrono>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "adapters/etcd/rig/server.h"
#include "adapters/postgres/rig/server.h"
#include "adapters/redis/rig/server.h"
#include "adapters/zookeeper/rig/server.h"
#include "bench/report.h"
#include "leasehold/election.h"
#include "leasehold/process/child.h"
#include "leasehold/stores.h"
#include "rig/temp_folder.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;
using namespace std::chrono_literals;

constexpr Millis kTtl = 1s;
constexpr int kElections = 10;  // at the same time, two candidates each
constexpr Millis kSettle = 300ms;

std::int64_t now_ns() {
  return BootClock::now().time_since_epoch().count();
}

// Prints "stands", and then what it was given and when: "TTL NANOSECONDS".
int stand(const std::string& url, const std::string& lock) {
  Election election(must(connect(url)), must(LockName::parse(lock)));
  std::cout << "stands" << std::endl;
  const auto leads = must(election.campaign({.ttl = kTtl}));
  std::cout << leads.lease().ttl().count() << " " << now_ns() << std::endl;
  pause();  // until it is killed
  return 0;
}

class Candidate {
 public:
  Candidate(const std::string& url, const std::string& lock)
      : child_(must(process::Child::start({.argv = {"/proc/self/exe", "--candidate", url, lock},
                                           .out = process::Piped{},
                                           .parent_death_signal = SIGKILL}))) {
    if (line() != "stands") stop("a candidate does not stand");
  }

  struct Lead {
    std::int64_t ttl = 0;  // milliseconds
    std::int64_t since = 0;
  };
  Lead await_lead() {
    Lead lead;
    std::istringstream words(line());
    if (!(words >> lead.ttl >> lead.since)) stop("a candidate has died");
    return lead;
  }

  // Gives when.
  std::int64_t kill() {
    const std::int64_t when = now_ns();
    child_.signal(SIGKILL);
    child_.wait();
    return when;
  }

 private:
  std::string line() {
    std::string text;
    for (char each = 0; read(child_.out().get(), &each, 1) == 1 && each != '\n';) text += each;
    return text;
  }

  process::Child child_;
};

struct FailOvers {
  std::vector<double> seconds;
  double ttl = 0;
};

FailOvers fail_over(const std::string& url, int number, int rounds) {
  const std::string lock = "lead/" + std::to_string(number);
  std::minstd_rand chance(static_cast<unsigned>(number) + 1);
  FailOvers found;
  auto leader = std::make_unique<Candidate>(url, lock);
  found.ttl = static_cast<double>(leader->await_lead().ttl) * 1e-3;
  for (int round = 0; round < rounds; ++round) {
    auto next = std::make_unique<Candidate>(url, lock);
    // It stands in the queue then, and the leader has just renewed, or is about to.
    std::this_thread::sleep_for(kSettle + Millis(chance() % kTtl.count()));
    const std::int64_t killed = leader->kill();
    found.seconds.push_back(static_cast<double>(next->await_lead().since - killed) * 1e-9);
    leader = std::move(next);
  }
  return found;
}

// `beyond`: how much longer than the TTL the slowest may take.
void measure(const std::string& store, const std::string& url, int rounds,
             std::optional<double> beyond) {
  std::vector<std::future<FailOvers>> elections;
  for (int i = 0; i < kElections; ++i) {
    elections.push_back(std::async(std::launch::async, fail_over, url, i, rounds));
  }
  FailOvers all;
  for (auto& each : elections) {
    const FailOvers found = each.get();
    all.ttl = found.ttl;
    all.seconds.insert(all.seconds.end(), found.seconds.begin(), found.seconds.end());
  }
  const std::string what = store + ": fail-over of an election, TTL " + format(all.ttl, "%.3g s");
  report({what + ", p50", format(percentile(all.seconds, 0.5), "%.3f s"), ""});
  const double p99 = percentile(all.seconds, 0.99);
  const double most = all.ttl + beyond.value_or(0);
  report({what + ", p99", format(p99, "%.3f s"), beyond ? format(most, "<= %.3g s") : "",
          p99 <= most});
}

}  // namespace

int main(int argc, char** argv) {
  register_stores();
  const std::string_view first = argc > 1 ? argv[1] : "all";
  if (argc == 4 && first == "--candidate") return stand(argv[2], argv[3]);
  const bool quick = std::string_view(argv[argc - 1]) == "--quick";
  const std::string_view store = first == "--quick" ? "all" : first;
  const int rounds = quick ? 3 : 10;
  if (store == "all" || store == "sqlite") {
    const rig::TempFolder folder;
    measure("SQLite", "sqlite:" + folder.file("locks.db"), rounds, 0.1);
  }
  if (store == "all" || store == "redis") {
    const rig::RedisServer server;
    measure("Redis", server.url(), rounds, 0.1);
  }
  if (store == "all" || store == "postgres") {
    rig::PostgresServer server;
    measure("PostgreSQL", server.url(server.create_database()), rounds, 0.1);
  }
  if (store == "all" || store == "etcd") {
    const rig::EtcdServer server;
    measure("etcd", "etcd://" + server.address() + "/bench", rounds, 1);
  }
  if (store == "all" || store == "zookeeper") {
    const rig::ZookeeperServer server({.max_session_ms = 60'000});
    measure("ZooKeeper", "zookeeper://" + server.address() + "/bench", rounds, {});
  }
  return 0;
}
