// The resource that the demo's workers fight over: an account's book in a SQLite database.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "leasehold/error.h"

struct sqlite3;

namespace leasehold::cli {

// One line of the book. The writer works out the balance from the one it has read, as programs do.
struct BookLine {
  std::string who;
  std::int64_t token = 0;  // as told by the writer; zero: none
  std::int64_t amount = 0;
  std::int64_t balance = 0;
};

// Not thread safe. Every call fails with `unavailable` and SQLite's own words.
class Book {
 public:
  // A new book with one line, the opening balance.
  [[nodiscard]] static Result<Book> create(const std::string& path, std::int64_t opening);
  [[nodiscard]] static Result<Book> open(const std::string& path);

  sqlite3* handle() const { return db_.get(); }

  // The balance of the last line.
  [[nodiscard]] Result<std::int64_t> balance() const;
  [[nodiscard]] Status append(const BookLine& line) const;
  [[nodiscard]] Result<std::vector<BookLine>> lines() const;

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  explicit Book(sqlite3* db) : db_(db) {}
  Error broken(const std::string& sentence) const;
  std::unique_ptr<sqlite3, Close> db_;
};

}  // namespace leasehold::cli
