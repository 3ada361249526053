// The payment event: a payment is booked, and the shipping department must be told. Told before the
// commit, it may hear of a payment that never was; told after it, a crash in between loses the
// event. So the event is written in the transaction that books the payment, and `leasehold outbox
// relay` delivers it from there, at least once. The receiver knows a repeat by its idempotency key.
// Failure injected (story.sh): the process is killed before the commit, killed between commit and
// delivery, and the relay is killed between delivery and its own mark.
#include <signal.h>
#include <sqlite3.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "leasehold/sqlite/outbox.h"

using leasehold::Status;

namespace {

// Where the story breaks the program: FAULT=name.
void fault(const std::string& name) {
  const char* wanted = std::getenv("FAULT");
  if (wanted != nullptr && name == wanted) raise(SIGKILL);
}

Status run(sqlite3* db, const std::string& sql) {
  if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return leasehold::fail(leasehold::ErrorCode::unavailable, sqlite3_errmsg(db));
}

Status prepare(sqlite3* db) {
  sqlite3_busy_timeout(db, 5000);
  auto ok = run(db, "CREATE TABLE IF NOT EXISTS payment(id INTEGER PRIMARY KEY, cents INTEGER)");
  return ok ? leasehold::sqlite::install_outbox(db) : ok;
}

Status book_and_tell(sqlite3* db, const std::string& id, const std::string& cents) {
  if (auto ok = run(db, "INSERT INTO payment VALUES(" + id + ", " + cents + ")"); !ok) return ok;
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
  fault("before_commit");
  auto committed = run(db, "COMMIT");
  fault("after_commit");
  return committed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: payment_event DATA-FILE PAYMENT-NUMBER CENTS\n";
    return 2;
  }
  sqlite3* opened = nullptr;
  const bool is_open = sqlite3_open(argv[1], &opened) == SQLITE_OK;
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> db(opened, &sqlite3_close);
  auto done = is_open ? prepare(db.get()) : run(db.get(), "");
  if (done) {
    done = pay(db.get(), std::to_string(std::atoi(argv[2])), std::to_string(std::atoi(argv[3])));
  }
  if (done) return 0;
  std::cerr << to_string(done.error()) << '\n';
  return 1;
}
