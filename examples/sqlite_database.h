// As much SQLite as the examples need.
#pragma once

#include <sqlite3.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "leasehold/error.h"

namespace example {

struct Close {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};
using Database = std::unique_ptr<sqlite3, Close>;

inline leasehold::Status run(sqlite3* db, const std::string& sql, std::string* first = nullptr) {
  const auto keep = [](void* into, int, char** columns, char**) {
    auto* text = static_cast<std::string*>(into);
    if (text != nullptr) *text = columns[0] == nullptr ? "" : columns[0];
    return 0;
  };
  if (sqlite3_exec(db, sql.c_str(), keep, first, nullptr) == SQLITE_OK) return {};
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
