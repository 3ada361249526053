// The last seat: one seat, and clerks who look, talk to the passenger and then sell. A fenced lease
// keeps them apart; the fence in the database refuses the one whose lease ended while it was away.
// So the lock may fail, and the seat is sold once all the same.
// Failure injected (story.sh): the first clerk's process is frozen after it took the lease, for
// longer than the lease lasts. It wakes up, still believes that it holds the lock, and sells.
#include <signal.h>

#include <chrono>
#include <string>

#include "../sqlite_database.h"
#include "leasehold/client.h"
#include "leasehold/sqlite/adapter.h"
#include "leasehold/sqlite/fence.h"

using leasehold::Status;
using leasehold::sqlite::OpenTransaction;

namespace {

Status prepare(sqlite3* db) {
  auto ok = example::run(db,
                         "CREATE TABLE IF NOT EXISTS seat(number TEXT PRIMARY KEY, passenger TEXT);"
                         "INSERT OR IGNORE INTO seat VALUES('14C', NULL)");
  return ok ? leasehold::sqlite::install_fence(db) : ok;
}

Status sell(sqlite3* db, const std::string& passenger) {
  std::string taken_by;
  auto ok = example::run(db, "SELECT passenger FROM seat WHERE number = ?", {"14C"}, &taken_by);
  if (!ok) return ok;
  if (!taken_by.empty()) {
    return leasehold::fail(leasehold::ErrorCode::invalid, "the seat is sold to " + taken_by);
  }
  return example::run(db, "UPDATE seat SET passenger = ? WHERE number = ?", {passenger, "14C"});
}

Status serve(leasehold::Client& locks, sqlite3* db, const std::string& passenger) {
  using namespace std::chrono_literals;
  auto lease = locks.acquire_fenced("seat/14C", {.ttl = 500ms, .wait = 60s});
  if (!lease) return leasehold::fail(lease.error());
  if (example::fault("freeze")) raise(SIGSTOP);  // the passenger looks for the wallet

  auto fence = leasehold::sqlite::Fence::open(db, "seat/14C");
  if (!fence) return leasehold::fail(fence.error());
  // The fence is entered first, then the seat is read, then written: one transaction.
  auto sold = fence->transaction(lease->token(),
                                 [&](OpenTransaction& tx) { return sell(tx.handle(), passenger); });
  if (sold) std::cout << "sold to " << passenger << '\n';
  return sold;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: last_seat LOCKS-FILE DATA-FILE PASSENGER\n";
    return 2;
  }
  leasehold::Registry::standard().add(leasehold::sqlite::adapters());
  auto locks = leasehold::connect(std::string("sqlite:") + argv[1]);
  if (!locks) return example::told(leasehold::fail(locks.error()));
  auto db = example::open(argv[2]);
  if (!db) return example::told(leasehold::fail(db.error()));
  auto done = prepare(db->get());
  if (done) done = serve(*locks, db->get(), argv[3]);
  return example::told(done);
}
