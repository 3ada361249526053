// How long a Leasehold waiter waits beside two loops of redis-py that poll for the same lock,
// beside a third such loop. In turns.
//
//   redis_py_bench LOOP.py [TURNS]
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "adapters/redis/rig/server.h"
#include "bench/report.h"
#include "leasehold/client.h"
#include "leasehold/process/child.h"
#include "leasehold/stores.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;
using namespace std::chrono_literals;

constexpr auto kHold = 50ms;

process::Child start(std::vector<std::string> argv) {
  return must(process::Child::start({.argv = std::move(argv),
                                     .in = process::Piped{},
                                     .out = process::Piped{},
                                     .parent_death_signal = SIGKILL}));
}

double our_wait(Client& client) {
  const auto began = std::chrono::steady_clock::now();
  auto lease = must(client.acquire("job", {.wait = 10min}));
  const std::chrono::duration<double, std::milli> waited = std::chrono::steady_clock::now() - began;
  std::this_thread::sleep_for(kHold);
  must(lease.release());
  return waited.count();
}

double their_wait(process::Child& loop) {
  process::write_all(loop.in().get(), "\n");
  const std::string told = process::read_until(loop.out().get(), "\n");
  if (told.empty()) stop("redis-py's loop has ended");
  return std::stod(told);
}

// So that the turn before leaves no trace.
void let_others_work(std::minstd_rand& random) {
  std::this_thread::sleep_for(200ms + std::chrono::milliseconds(random() % 100));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) stop("usage: redis_py_bench LOOP.py [TURNS]");
  const int turns = argc > 2 ? std::atoi(argv[2]) : 200;
  const rig::RedisServer server({.durable = false});
  const std::vector<std::string> loop = {"/usr/bin/python3", argv[1], std::to_string(server.port()),
                                         "lock:job"};
  const process::Child one = start(loop);
  const process::Child two = start(loop);
  std::vector<std::string> third = loop;
  third.push_back("measure");
  process::Child measured = start(third);
  register_stores();
  Client client = must(connect(server.url()));

  std::minstd_rand random(4711);
  std::vector<double> ours;
  std::vector<double> theirs;
  for (int i = -3; i < turns; ++i) {
    let_others_work(random);
    const double we = our_wait(client);
    let_others_work(random);
    const double they = their_wait(measured);
    if (i < 0) continue;  // the first start Python
    ours.push_back(we);
    theirs.push_back(they);
  }
  const auto beside = [&](const std::string& what, double fraction) {
    const double we = percentile(ours, fraction);
    const double they = percentile(theirs, fraction);
    report({"beside two redis-py loops: wait, " + what, format(we, "%.0f ms"), ""});
    report({"the same of a third redis-py loop", format(they, "%.0f ms"), ""});
    report({"Leasehold's wait beside redis-py's, " + what, format(we / they, "%.2f x the time"),
            "<= 2 x", we / they <= 2});
  };
  beside("median", 0.5);
  beside("p99", 0.99);
  return 0;
}
