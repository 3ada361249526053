// What shared locks and permits cost beside exclusive ones, in turns on the same store.
//
//   modes_bench [STORE] [--quick]
#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include "adapters/etcd/rig/server.h"
#include "adapters/postgres/rig/server.h"
#include "adapters/redis/rig/server.h"
#include "adapters/zookeeper/rig/server.h"
#include "bench/compare.h"
#include "bench/report.h"
#include "leasehold/client.h"
#include "leasehold/stores.h"
#include "rig/temp_folder.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;

constexpr int kPermits = 4;
constexpr int kWaiters = 32;

// Threads of one client: each with a lock of its own, or all with the same one.
Side taking(const std::string& url, Mode mode, bool same_lock = false) {
  auto client = std::make_shared<Client>(must(connect(url)));
  return {to_string(mode), [client, mode, same_lock](int worker) {
            const std::string name =
                to_string(mode) + (same_lock ? "" : "/" + std::to_string(worker));
            return [client, mode, name] {
              auto lease = must(client->acquire(name, {.mode = mode}));
              (void)must(lease.release());
              return true;
            };
          }};
}

// Clients of their own, who all wait for what others of them have. A grant counts that is handed
// over: another one had it last, or had that slot last of several.
Side waiting(const std::string& url, Mode mode) {
  struct Batons {
    std::array<Baton, kPermits> of_slot;
  };
  return {to_string(mode), [url, mode, batons = std::make_shared<Batons>()](int worker) {
            auto client = std::make_shared<Client>(must(connect(url)));
            return [client, mode, batons, worker] {
              auto lease = must(client->acquire("wanted as " + to_string(mode),
                                                {.wait = std::chrono::minutes(5), .mode = mode}));
              const auto slot = static_cast<std::size_t>(lease.slot().value_or(Slot{0}).number);
              const bool handed_over = batons->of_slot.at(slot).taken_by(worker);
              (void)must(lease.release());
              return handed_over;
            };
          }};
}

struct Targets {
  double permit = 0.9;
  bool readers_in_parallel = false;  // so that many readers of one lock are like many locks
};

void measure(const std::string& store, const std::string& url, const Targets& targets, int argc,
             char** argv) {
  const Mode exclusive = Mode::exclusive();
  const Effort one = effort_of(argc, argv, 1);
  compare(store + ": shared beside exclusive", taking(url, Mode::shared()), taking(url, exclusive),
          one, 0.9);
  compare(store + ": permit beside exclusive", taking(url, Mode::permit_of(kPermits)),
          taking(url, exclusive), one, targets.permit);
  compare(store + ": 100 readers beside 100 locks", taking(url, Mode::shared(), true),
          taking(url, exclusive), effort_of(argc, argv, 100),
          targets.readers_in_parallel ? std::optional(0.8) : std::nullopt);
  for (const int permits : {1, kPermits}) {
    compare(store + ": permit of " + std::to_string(permits) + " handed over, 32 wait",
            waiting(url, Mode::permit_of(permits)), waiting(url, exclusive),
            effort_of(argc, argv, kWaiters + permits), 0.9);
  }
}

}  // namespace

int main(int argc, char** argv) {
  register_stores();
  const std::string_view first = argc > 1 ? argv[1] : "all";
  const std::string_view store = first == "--quick" ? "all" : first;
  if (store == "all" || store == "sqlite") {
    const rig::TempFolder folder;
    measure("SQLite", "sqlite:" + folder.file("locks.db"), {.readers_in_parallel = true}, argc,
            argv);
  }
  if (store == "all" || store == "redis") {
    rig::RedisServer server({.durable = false});
    measure("Redis", server.url(), {.readers_in_parallel = true}, argc, argv);
  }
  if (store == "all" || store == "postgres") {
    rig::PostgresServer server;
    measure("PostgreSQL", server.url(server.create_database()), {}, argc, argv);
  }
  if (store == "all" || store == "etcd") {
    const rig::EtcdServer server;
    measure("etcd", "etcd://" + server.address() + "/bench", {.permit = 0.6}, argc, argv);
  }
  if (store == "all" || store == "zookeeper") {
    const rig::ZookeeperServer server({.max_session_ms = 60'000});
    measure("ZooKeeper", "zookeeper://" + server.address() + "/bench", {.permit = 0.6}, argc, argv);
  }
  return 0;
}
