#include "cli/demo/book.h"

#include <sqlite3.h>

#include "kit/try.h"

namespace leasehold::cli {
namespace {

constexpr int kBusyMillis = 5000;

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Statement prepare(sqlite3* db, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(db, sql, -1, &statement, nullptr);
  return Statement(statement);
}

}  // namespace

void Book::Close::operator()(sqlite3* db) const {
  sqlite3_close(db);
}

Error Book::broken(const std::string& sentence) const {
  return Error(ErrorCode::unavailable, sentence, sqlite3_errmsg(db_.get()));
}

Result<Book> Book::open(const std::string& path) {
  sqlite3* db = nullptr;
  const int code = sqlite3_open(path.c_str(), &db);
  Book book(db);
  if (code != SQLITE_OK) return fail(book.broken("cannot open " + path));
  sqlite3_busy_timeout(db, kBusyMillis);
  return book;
}

Result<Book> Book::create(const std::string& path, std::int64_t opening) {
  auto book = open(path);
  if (!book) return book;
  constexpr const char* kTable =
      "CREATE TABLE book(line INTEGER PRIMARY KEY, who TEXT NOT NULL, token INTEGER NOT NULL,"
      " amount INTEGER NOT NULL, balance INTEGER NOT NULL)";
  if (sqlite3_exec(book->handle(), kTable, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return fail(book->broken("cannot create the account's book in " + path));
  }
  TRY(book->append({"opened", 0, opening, opening}));
  return book;
}

Result<std::int64_t> Book::balance() const {
  const auto query = prepare(db_.get(), "SELECT balance FROM book ORDER BY line DESC LIMIT 1");
  if (!query || sqlite3_step(query.get()) != SQLITE_ROW) {
    return fail(broken("cannot read the balance"));
  }
  return sqlite3_column_int64(query.get(), 0);
}

Status Book::append(const BookLine& line) const {
  const auto insert =
      prepare(db_.get(), "INSERT INTO book(who, token, amount, balance) VALUES(?, ?, ?, ?)");
  if (!insert) return fail(broken("cannot write into the book"));
  sqlite3_bind_text(insert.get(), 1, line.who.c_str(), -1, SQLITE_TRANSIENT);
  sqlite3_bind_int64(insert.get(), 2, line.token);
  sqlite3_bind_int64(insert.get(), 3, line.amount);
  sqlite3_bind_int64(insert.get(), 4, line.balance);
  if (sqlite3_step(insert.get()) != SQLITE_DONE) return fail(broken("cannot write into the book"));
  return {};
}

Result<std::vector<BookLine>> Book::lines() const {
  const auto query =
      prepare(db_.get(), "SELECT who, token, amount, balance FROM book ORDER BY line");
  if (!query) return fail(broken("cannot read the book"));
  std::vector<BookLine> lines;
  int code = sqlite3_step(query.get());
  for (; code == SQLITE_ROW; code = sqlite3_step(query.get())) {
    lines.push_back({reinterpret_cast<const char*>(sqlite3_column_text(query.get(), 0)),
                     sqlite3_column_int64(query.get(), 1), sqlite3_column_int64(query.get(), 2),
                     sqlite3_column_int64(query.get(), 3)});
  }
  if (code != SQLITE_DONE) return fail(broken("cannot read the book"));
  return lines;
}

}  // namespace leasehold::cli
