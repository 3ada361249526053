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
#include "testing/temp_folder.h"

namespace leasehold::sqlite {

using leasehold::testing::TempFolder;

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
  std::string exec(const std::string& sql) const {
    char* words = nullptr;
    sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, &words);
    const std::string message = words == nullptr ? "" : words;
    sqlite3_free(words);
    return message;
  }

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

template <class T>
::testing::AssertionResult good(const Result<T>& result) {
  if (result) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << to_string(result.error());
}

template <class T>
::testing::AssertionResult bad(const Result<T>& result, ErrorCode code) {
  if (result) return ::testing::AssertionFailure() << "it succeeded";
  if (result.error().code == code) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << to_string(result.error());
}

inline RequestId request_of(char digit) {
  return RequestId::from_hex(std::string(32, digit)).value();
}

inline Lineage lineage_of(char digit) {
  return Lineage::parse(std::string(32, digit) + "/invoice/1234").value();
}

inline Token token_of(std::int64_t number, char request, char store = 'a') {
  return Token{TokenNumber::of(number).value(), lineage_of(store), request_of(request)};
}

}  // namespace leasehold::sqlite
