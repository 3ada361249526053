// The payment event: a payment is booked, and the shipping department must be told. Told before the
// commit, it may hear of a payment that never was; told after it, a crash in between loses the
// event. So the event is written in the transaction that books the payment, and `leasehold outbox
// relay` delivers it from there, at least once. The receiver knows a repeat by its idempotency key.
// Failure injected (story.sh): the process is killed before the commit, killed between commit and
// delivery, and the relay is killed between delivery and its own mark.
#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "../sqlite_database.h"
#include "leasehold/sqlite/outbox.h"

using example::run;
using leasehold::Status;

namespace {

void crash_if(const std::string& name) {
  if (example::fault(name)) raise(SIGKILL);
}

Status prepare(sqlite3* db) {
  auto ok = run(db, "CREATE TABLE IF NOT EXISTS payment(id INTEGER PRIMARY KEY, cents INTEGER)");
  return ok ? leasehold::sqlite::install_outbox(db) : ok;
}

Status book_and_tell(sqlite3* db, const std::string& id, const std::string& cents) {
  if (auto ok = run(db, "INSERT INTO payment VALUES(?, ?)", {id, cents}); !ok) return ok;
  auto put = leasehold::sqlite::outbox_put(db, {.key = "payment/" + id,
                                                .topic = "payment.received",
                                                .payload = cents,
                                                .idempotency_key = "received/" + id});
  if (!put) return leasehold::fail(put.error());
  return {};
}

Status pay(sqlite3* db, const std::string& id, const std::string& cents) {
  if (auto ok = run(db, "BEGIN IMMEDIATE"); !ok) return ok;
  if (auto ok = book_and_tell(db, id, cents); !ok) {
    (void)run(db, "ROLLBACK");
    return ok;
  }
  crash_if("before_commit");
  auto committed = run(db, "COMMIT");
  crash_if("after_commit");
  return committed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: payment_event DATA-FILE PAYMENT-NUMBER CENTS\n";
    return 2;
  }
  const auto db = example::open(argv[1]);
  if (!db) return example::told(leasehold::fail(db.error()));
  if (auto ok = prepare(db->get()); !ok) return example::told(ok);
  return example::told(
      pay(db->get(), std::to_string(std::atoi(argv[2])), std::to_string(std::atoi(argv[3]))));
}
