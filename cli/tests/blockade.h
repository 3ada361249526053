// A store that does not answer.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

namespace leasehold::cli {

// Keeps everybody else from writing to a database while it lives: the store does not answer.
class Blockade {
 public:
  explicit Blockade(const std::string& file) {
    EXPECT_EQ(sqlite3_open(file.c_str(), &database_), SQLITE_OK);
    sqlite3_busy_timeout(database_, 10'000);
    EXPECT_EQ(sqlite3_exec(database_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  }
  ~Blockade() { sqlite3_close(database_); }
  Blockade(const Blockade&) = delete;
  Blockade& operator=(const Blockade&) = delete;

 private:
  sqlite3* database_ = nullptr;
};

}  // namespace leasehold::cli
