// What shared locks and permits cost beside exclusive ones, in turns on the same store.
//
//   modes_bench [STORE] [--quick]
#include <chrono>
#include <string>
#include <string_view>

#include "adapters/postgres/rig/server.h"
#include "adapters/redis/rig/server.h"
#include "bench/compare.h"
#include "bench/report.h"
#include "leasehold/client.h"
#include "leasehold/stores.h"
#include "rig/temp_folder.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;

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

// Clients of their own, who all wait for what one of them has.
Side waiting(const std::string& url, Mode mode) {
  return {to_string(mode), [url, mode, baton = std::make_shared<Baton>()](int worker) {
            auto client = std::make_shared<Client>(must(connect(url)));
            return [client, mode, baton, worker] {
              auto lease = must(client->acquire("wanted as " + to_string(mode),
                                                {.wait = std::chrono::minutes(5), .mode = mode}));
              const bool handed_over = baton->taken_by(worker);
              (void)must(lease.release());
              return handed_over;
            };
          }};
}

void measure(const std::string& store, const std::string& url, bool readers_in_parallel, int argc,
             char** argv) {
  const Mode exclusive = Mode::exclusive();
  const Effort one = effort_of(argc, argv, 1);
  compare(store + ": shared beside exclusive", taking(url, Mode::shared()), taking(url, exclusive),
          one, 0.9);
  compare(store + ": permit beside exclusive", taking(url, Mode::permit_of(4)),
          taking(url, exclusive), one, 0.9);
  compare(store + ": 100 readers beside 100 locks", taking(url, Mode::shared(), true),
          taking(url, exclusive), effort_of(argc, argv, 100),
          readers_in_parallel ? std::optional(0.8) : std::nullopt);
  compare(store + ": permit handed over, 32 wait", waiting(url, Mode::permit_of(1)),
          waiting(url, exclusive), effort_of(argc, argv, 32), 0.9);
}

}  // namespace

int main(int argc, char** argv) {
  register_stores();
  const std::string_view first = argc > 1 ? argv[1] : "all";
  const std::string_view store = first == "--quick" ? "all" : first;
  if (store == "all" || store == "sqlite") {
    const rig::TempFolder folder;
    measure("SQLite", "sqlite:" + folder.file("locks.db"), true, argc, argv);
  }
  if (store == "all" || store == "redis") {
    rig::RedisServer server({.durable = false});
    measure("Redis", server.url(), true, argc, argv);
  }
  if (store == "all" || store == "postgres") {
    rig::PostgresServer server;
    measure("PostgreSQL", server.url(server.create_database()), false, argc, argv);
  }
  return 0;
}
