// As much SQLite as the examples need.
#pragma once

#include <sqlite3.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "leasehold/error.h"

namespace example {

struct Close {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};
using Database = std::unique_ptr<sqlite3, Close>;

inline leasehold::Status run(sqlite3* db, const char* sql) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return leasehold::fail(leasehold::ErrorCode::unavailable, sqlite3_errmsg(db));
}

// One statement with values for its question marks: they are never part of the SQL. `first` gets
// the first column of a row, if there is one.
inline leasehold::Status run(sqlite3* db, const char* sql, const std::vector<std::string>& values,
                             std::string* first = nullptr) {
  sqlite3_stmt* statement = nullptr;
  bool ok = sqlite3_prepare_v2(db, sql, -1, &statement, nullptr) == SQLITE_OK;
  for (std::size_t i = 0; ok && i < values.size(); ++i) {
    ok = sqlite3_bind_text(statement, static_cast<int>(i) + 1, values[i].data(),
                           static_cast<int>(values[i].size()), SQLITE_TRANSIENT) == SQLITE_OK;
  }
  while (ok && sqlite3_step(statement) == SQLITE_ROW) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    if (first != nullptr) *first = text == nullptr ? "" : text;
  }
  // The last step's error, or the first that was met.
  if (sqlite3_finalize(statement) == SQLITE_OK && ok) return {};
  return leasehold::fail(leasehold::ErrorCode::unavailable, sqlite3_errmsg(db));
}

// Waits up to five seconds for other writers.
inline leasehold::Result<Database> open(const char* path) {
  sqlite3* db = nullptr;
  const int opened = sqlite3_open(path, &db);
  Database database(db);
  if (opened != SQLITE_OK) {
    return leasehold::fail(leasehold::ErrorCode::unavailable, sqlite3_errmsg(db));
  }
  sqlite3_busy_timeout(db, 5000);
  if (auto ok = run(db, "PRAGMA journal_mode = wal"); !ok) return leasehold::fail(ok.error());
  return database;
}

// The exit status of a program: 1 after an error, which is printed.
inline int told(const leasehold::Status& status) {
  if (status) return 0;
  std::cerr << to_string(status.error()) << '\n';
  return 1;
}

// Where the stories break the programs: FAULT=name.
inline bool fault(const std::string& name) {
  const char* wanted = std::getenv("FAULT");
  return wanted != nullptr && name == wanted;
}

}  // namespace example
