// The invoice charged once: the customer's payment is asked for, and asked for again when no answer
// came. An idempotency key, stored in the transaction that writes the charge, makes the second call
// find the first one's receipt. No lock: nothing is held between the calls, and nothing can expire.
// Failure injected (story.sh): the process is killed before the commit, and killed after it but
// before its reply. Either way the retry ends with one charge and one receipt.
#include <signal.h>

#include <string>

#include "../sqlite_database.h"
#include "leasehold/sqlite/once.h"

using leasehold::Result;
using leasehold::Status;
using leasehold::sqlite::OpenTransaction;

namespace {

Status prepare(sqlite3* db) {
  auto ok = example::run(db, "CREATE TABLE IF NOT EXISTS charge(invoice TEXT, cents INTEGER)");
  return ok ? leasehold::sqlite::install_once(db) : ok;
}

Status charge(sqlite3* db, const std::string& invoice, int cents) {
  auto once = leasehold::sqlite::Once::open(db);
  if (!once) return leasehold::fail(once.error());

  const auto work = [&](OpenTransaction& tx) -> Result<std::string> {
    auto ok = example::run(tx.handle(), "INSERT INTO charge VALUES(?, ?)",
                           {invoice, std::to_string(cents)});
    if (!ok) return leasehold::fail(ok.error());
    if (example::fault("before_commit")) raise(SIGKILL);
    return "receipt " + std::to_string(sqlite3_last_insert_rowid(tx.handle()));
  };
  auto done = once->run("charge/" + invoice, "cents=" + std::to_string(cents), work);
  if (!done) return leasehold::fail(done.error());

  if (example::fault("before_reply")) raise(SIGKILL);
  std::cout << done->result << (done->replayed ? ", charged before\n" : ", charged now\n");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: charged_once DATA-FILE INVOICE-NUMBER CENTS\n";
    return 2;
  }
  auto db = example::open(argv[1]);
  if (!db) return example::told(leasehold::fail(db.error()));
  auto done = prepare(db->get());
  if (done) {
    done = charge(db->get(), std::to_string(std::atoi(argv[2])), std::atoi(argv[3]));
  }
  return example::told(done);
}
