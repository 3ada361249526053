// One leader: every machine runs this scheduler, and the one that leads writes the schedule. Nobody
// can know that it still leads, so it shows its token to the fence in the database, which refuses
// the one who was replaced.
// Failures injected (story.sh): the leader is frozen for longer than its lease lasts, somebody else
// leads, and then it wakes up and writes; another leader is killed.
#include <signal.h>

#include <chrono>
#include <string>

#include "../sqlite_database.h"
#include "leasehold/election.h"
#include "leasehold/sqlite/adapter.h"
#include "leasehold/sqlite/fence.h"

using leasehold::Status;
using leasehold::sqlite::OpenTransaction;

namespace {

Status prepare(sqlite3* db) {
  auto ok = example::run(db,
                         "CREATE TABLE IF NOT EXISTS schedule(id INTEGER PRIMARY KEY, author TEXT);"
                         "INSERT OR IGNORE INTO schedule VALUES(1, '')");
  return ok ? leasehold::sqlite::install_fence(db) : ok;
}

Status lead(leasehold::Client& locks, sqlite3* db, const std::string& name) {
  using namespace std::chrono_literals;
  leasehold::Election election(locks, leasehold::LockName::parse("scheduler").value());
  auto leads = election.campaign({.ttl = 500ms, .note = name});  // as long as it takes
  if (!leads) return leasehold::fail(leads.error());
  if (example::fault("kill")) raise(SIGKILL);
  if (example::fault("freeze")) raise(SIGSTOP);

  auto fence = leasehold::sqlite::Fence::open(db, "schedule");
  if (!fence) return leasehold::fail(fence.error());
  auto written = fence->transaction(leads->token().value(), [&](OpenTransaction& tx) {
    return example::run(tx.handle(), "UPDATE schedule SET author = ?", {name});
  });
  if (written) std::cout << name << " leads\n";
  return written;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: one_leader LOCKS-FILE DATA-FILE NAME\n";
    return 2;
  }
  leasehold::Registry::standard().add(leasehold::sqlite::adapters());
  auto locks = leasehold::connect(std::string("sqlite:") + argv[1]);
  if (!locks) return example::told(leasehold::fail(locks.error()));
  auto db = example::open(argv[2]);
  if (!db) return example::told(leasehold::fail(db.error()));
  auto done = prepare(db->get());
  if (done) done = lead(*locks, db->get(), argv[3]);
  return example::told(done);
}
