// The warehouse counter: many tills take items from one stock. Each reads the amount, subtracts,
// and writes only if nobody has written since; else it does so again (compare-and-set). No lock: a
// till that hangs holds nobody up, and there is no lease to lose. Failure injected (story.sh): a
// till is frozen between its read and its write, while the other sells on. Its write finds another
// version, is not done, and it counts again.
#include <signal.h>

#include <string>

#include "../sqlite_database.h"
#include "leasehold/sqlite/versioned_row.h"

using leasehold::Result;
using leasehold::Status;
using leasehold::sqlite::VersionedRow;

namespace {

Status prepare(sqlite3* db) {
  return example::run(db,
                      "CREATE TABLE IF NOT EXISTS stock(id TEXT PRIMARY KEY, amount INTEGER,"
                      " version INTEGER NOT NULL DEFAULT 0);"
                      "INSERT OR IGNORE INTO stock(id, amount) VALUES('bolt', 100)");
}

Status take(sqlite3* db, int count) {
  auto row = VersionedRow::open(db, {.table = "stock", .key = "bolt", .columns = {"amount"}});
  if (!row) return leasehold::fail(row.error());

  bool slow = example::fault("freeze");
  const auto take_away = [&](const VersionedRow::Value& seen) -> Result<VersionedRow::Value> {
    if (std::exchange(slow, false)) raise(SIGSTOP);
    const int left = std::stoi(seen.at(0).value()) - count;
    if (left < 0) return leasehold::fail(leasehold::ErrorCode::invalid, "not enough in stock");
    return VersionedRow::Value{std::to_string(left)};
  };
  auto changed = leasehold::compare_and_set(*row, take_away, {.attempts = 1000});
  if (!changed) return leasehold::fail(changed.error());
  std::cout << "left " << changed->value.at(0).value() << ", conflicts " << changed->conflicts
            << '\n';
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: warehouse_counter DATA-FILE COUNT\n";
    return 2;
  }
  auto db = example::open(argv[1]);
  if (!db) return example::told(leasehold::fail(db.error()));
  auto done = prepare(db->get());
  if (done) done = take(db->get(), std::atoi(argv[2]));
  return example::told(done);
}
