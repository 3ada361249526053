// A database as a user of the fence has one: a file, a table, connections of their own.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "leasehold/error.h"
#include "leasehold/token.h"
#include "rig/temp_folder.h"
#include "testing/results.h"
#include "testing/tokens.h"

namespace leasehold::sqlite {

using leasehold::rig::TempFolder;

// Empty, or SQLite's own words.
inline std::string exec_on(sqlite3* db, const std::string& sql) {
  char* words = nullptr;
  sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &words);
  const std::string message = words == nullptr ? "" : words;
  sqlite3_free(words);
  return message;
}

// The user's own connection, made with SQLite's own interface.
class UserConnection {
 public:
  explicit UserConnection(const std::string& path, int busy_millis = 30000) {
    if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) std::abort();
    sqlite3_busy_timeout(db_, busy_millis);
  }
  UserConnection(const UserConnection&) = delete;
  // sqlite3_close refuses while a statement is left, so this proves that none is.
  ~UserConnection() { EXPECT_EQ(sqlite3_close(db_), SQLITE_OK); }

  sqlite3* get() const { return db_; }

  // Empty, or SQLite's own words.
  std::string exec(const std::string& sql) const { return exec_on(db_, sql); }

  // The first column of the first row as text, or "none".
  std::string ask(const std::string& sql) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
      return sqlite3_errmsg(db_);
    }
    std::string answer = "none";
    if (sqlite3_step(statement) == SQLITE_ROW) {
      const auto* text = sqlite3_column_text(statement, 0);
      answer = text == nullptr ? "NULL" : reinterpret_cast<const char*>(text);
    }
    sqlite3_finalize(statement);
    return answer;
  }

 private:
  sqlite3* db_ = nullptr;
};

using leasehold::testing::bad;
using leasehold::testing::good;
using leasehold::testing::lineage_of;
using leasehold::testing::request_of;
using leasehold::testing::token_of;

}  // namespace leasehold::sqlite
