// Counts its runs in a database of its own: takes a fenced lease, enters the fence with its token,
// adds one. Prints the token, which grows at each run, and the count.
#include <sqlite3.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

#include "leasehold/client.h"
#include "leasehold/sqlite/adapter.h"
#include "leasehold/sqlite/fence.h"

namespace {

using std::chrono::seconds;

leasehold::Status run(sqlite3* db, const char* sql, long* number = nullptr) {
  const auto keep = [](void* into, int, char** columns, char**) {
    if (into != nullptr) *static_cast<long*>(into) = std::atol(columns[0]);
    return 0;
  };
  if (sqlite3_exec(db, sql, keep, number, nullptr) == SQLITE_OK) return {};
  return leasehold::fail(leasehold::ErrorCode::unavailable, sqlite3_errmsg(db));
}

leasehold::Status prepare(sqlite3* data) {
  sqlite3_busy_timeout(data, 5000);  // wait for other writers
  auto ok = run(data,
                "CREATE TABLE IF NOT EXISTS runs(id INTEGER PRIMARY KEY, count INTEGER);"
                "INSERT OR IGNORE INTO runs VALUES(1, 0)");
  return ok ? leasehold::sqlite::install_fence(data) : ok;
}

leasehold::Status count_run(leasehold::Client& locks, sqlite3* data) {
  auto lease = locks.acquire_fenced("runs", {.ttl = seconds(30), .wait = seconds(5)});
  if (!lease) return leasehold::fail(lease.error());
  auto fence = leasehold::sqlite::Fence::open(data, "runs");
  if (!fence) return leasehold::fail(fence.error());

  long count = 0;
  auto done = fence->transaction(lease->token(), [&](auto& tx) {
    return run(tx.handle(), "UPDATE runs SET count = count + 1 RETURNING count", &count);
  });
  if (!done) return done;
  std::cout << "token " << lease->token().number.value() << ", run " << count << '\n';

  // What the fence has let in is safe, however the lease ended. Without a fence `too_late` would
  // mean that somebody else may have worked meanwhile.
  if (auto released = lease->release(); !released) return leasehold::fail(released.error());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: consumer LOCKS-FILE DATA-FILE\n";
    return 2;
  }
  leasehold::Registry::standard().add(leasehold::sqlite::adapters());
  auto locks = leasehold::connect(std::string("sqlite:") + argv[1]);
  if (!locks) {
    std::cerr << to_string(locks.error()) << '\n';
    return 1;
  }
  sqlite3* data = nullptr;
  if (sqlite3_open(argv[2], &data) != SQLITE_OK) {
    std::cerr << sqlite3_errmsg(data) << '\n';
    sqlite3_close(data);
    return 1;
  }
  auto done = prepare(data);
  if (done) done = count_run(*locks, data);
  if (!done) std::cerr << to_string(done.error()) << '\n';
  sqlite3_close(data);
  return done ? 0 : 1;
}
