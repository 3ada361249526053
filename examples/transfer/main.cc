// A transfer between two accounts needs the locks of both. acquire_all takes them in one order,
// whatever the order here, so that two transfers in opposite directions cannot wait for each other
// for ever. The tokens of both enter the fence in the transaction that moves the money.
// Failures injected (story.sh): transfers run against each other, and one is killed when it has
// both locks and half of the money moved.
#include <signal.h>

#include <chrono>
#include <string>

#include "../sqlite_database.h"
#include "leasehold/several_locks.h"
#include "leasehold/sqlite/adapter.h"
#include "leasehold/sqlite/fence.h"

using leasehold::LockName;
using leasehold::Status;
using leasehold::sqlite::Fence;
using leasehold::sqlite::OpenTransaction;

namespace {

Status prepare(sqlite3* db) {
  auto ok = example::run(db,
                         "CREATE TABLE IF NOT EXISTS account(name TEXT PRIMARY KEY, cents INTEGER);"
                         "INSERT OR IGNORE INTO account VALUES('a', 1000), ('b', 1000)");
  return ok ? leasehold::sqlite::install_fence(db) : ok;
}

Status book(sqlite3* db, const std::string& account, int cents) {
  return example::run(db, "UPDATE account SET cents = cents + ? WHERE name = ?",
                      {std::to_string(cents), account});
}

Status transfer(leasehold::Client& locks, sqlite3* db, const std::string& from,
                const std::string& to, int cents) {
  using namespace std::chrono_literals;
  const auto payer = LockName::parse("account/" + from).value();
  const auto payee = LockName::parse("account/" + to).value();
  auto both = acquire_all_fenced(locks, {payer, payee}, {.ttl = 500ms, .wait = 60s});
  if (!both) return leasehold::fail(both.error());

  auto fence = Fence::open(db, payer.str());
  auto other = Fence::open(db, payee.str());
  if (!fence || !other) return leasehold::fail((fence ? other : fence).error());
  return fence->transaction(both->find(payer)->token(), [&](OpenTransaction& tx) -> Status {
    auto ok = other->enter(both->find(payee)->token());
    if (ok) ok = book(tx.handle(), from, -cents);
    if (example::fault("kill")) raise(SIGKILL);
    return ok ? book(tx.handle(), to, cents) : ok;
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: transfer LOCKS-FILE DATA-FILE FROM TO CENTS\n";
    return 2;
  }
  leasehold::Registry::standard().add(leasehold::sqlite::adapters());
  auto locks = leasehold::connect(std::string("sqlite:") + argv[1]);
  if (!locks) return example::told(leasehold::fail(locks.error()));
  auto db = example::open(argv[2]);
  if (!db) return example::told(leasehold::fail(db.error()));
  auto done = prepare(db->get());
  if (done) done = transfer(*locks, db->get(), argv[3], argv[4], std::atoi(argv[5]));
  return example::told(done);
}
