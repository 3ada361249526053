#include "leasehold/sqlite/row_fence.h"

#include "database.h"
#include "fence/refusal.h"
#include "fence_table.h"
#include "guard.h"
#include "kit/try.h"

namespace leasehold::sqlite {
namespace {

using sql::RowFenceSql;

struct FenceColumn {
  const char* name;
  const char* type;
};
constexpr FenceColumn kColumns[] = {{"fence", "INTEGER"},
                                    {"fence_lineage", "TEXT"},
                                    {"fence_request", "TEXT"},
                                    {"fence_refused", "INTEGER NOT NULL DEFAULT 0"}};

std::string qualified(const std::string& table) {
  return "main." + RowFenceSql::quoted(table);
}

Result<bool> has_column(Connection connection, const std::string& table, std::string_view column) {
  auto select = TRY(connection.prepare(
      "SELECT 1 FROM pragma_table_info(?1, 'main') WHERE name = ?2 COLLATE NOCASE"));
  return select.bind(1, table).bind(2, column).step();
}

Status check_column(Connection connection, const std::string& table, std::string_view column) {
  auto there = TRY(has_column(connection, table, column));
  if (there) return {};
  return fail(ErrorCode::invalid, "table '" + table + "' has no column '" + std::string(column) +
                                      "'; add_fence_columns() adds those of the fence");
}

class TokenTexts {
 public:
  explicit TokenTexts(const Token& token)
      : number_(token.number.value()),
        lineage_(token.lineage.str()),
        request_(token.request.hex()) {}
  void bind_to(Statement& statement) const {
    statement.bind(2, number_).bind(3, lineage_).bind(4, request_);
  }

 private:
  std::int64_t number_;
  std::string lineage_;
  std::string request_;
};

Error no_row(const ResourceName& key) {
  return Error(ErrorCode::invalid, "there is no row '" + key.str() + "'");
}

Status add_columns(Connection connection, std::string_view table) {
  auto transaction = TRY(Transaction::begin(connection));
  auto name = TRY(find_table(connection, table));
  for (const FenceColumn& column : kColumns) {
    auto there = TRY(has_column(connection, name, column.name));
    if (there) continue;
    const std::string sql =
        "ALTER TABLE " + qualified(name) + " ADD COLUMN " + column.name + " " + column.type;
    TRY(connection.exec(sql.c_str()));
  }
  return transaction.commit();
}

}  // namespace

Status add_fence_columns(sqlite3* db, std::string_view table) {
  const Connection connection(db);
  if (connection.in_transaction()) {
    return fail(ErrorCode::invalid,
                "adding columns needs a connection without an open transaction");
  }
  return connection.durably([&] { return add_columns(connection, table); });
}

Result<RowFence> RowFence::open(sqlite3* db, std::string_view table, std::string_view key) {
  const Connection connection(db);
  auto name = TRY(find_table(connection, table));
  TRY(check_column(connection, name, key));
  for (const FenceColumn& column : kColumns) {
    TRY(check_column(connection, name, column.name));
  }
  return RowFence(
      db, RowFenceSql(qualified(name), RowFenceSql::quoted(name), std::string(key), {.sign = '?'}));
}

Result<std::vector<RowFence::Value>> RowFence::enter(std::string_view key, const Token& token,
                                                     const std::vector<std::string>& columns,
                                                     Entry entry) const {
  auto name = TRY(ResourceName::parse(key));
  return Connection(db_).durably([&] { return raise(name, token, columns, entry); });
}

Result<std::vector<RowFence::Value>> RowFence::raise(const ResourceName& key, const Token& token,
                                                     const std::vector<std::string>& columns,
                                                     Entry entry) const {
  const Connection connection(db_);
  const TokenTexts texts(token);
  auto update = connection.prepare(sql_.enter(columns, entry == Entry::single));
  if (!update) return fail(write_error(connection, std::move(update.error())));
  texts.bind_to(update->bind(1, key.str()));
  auto row = update->step();
  if (!row) return fail(write_error(connection, std::move(row.error())));
  if (!*row) {
    update->reset();
    return fail(refused(key, token, entry));
  }
  std::vector<Value> values;
  for (int column = 1; column <= static_cast<int>(columns.size()); ++column) {
    if (update->is_null(column)) {
      values.emplace_back();
    } else {
      values.emplace_back(std::string(update->text(column)));
    }
  }
  // Only the end of the statement commits it.
  for (auto more = update->step(); !more || *more; more = update->step()) {
    if (!more) return fail(write_error(connection, std::move(more.error())));
  }
  return values;
}

Status RowFence::write(std::string_view key, const Token& token, const Values& values,
                       Entry entry) const {
  auto name = TRY(ResourceName::parse(key));
  return Connection(db_).durably([&] { return put(name, token, values, entry); });
}

Status RowFence::put(const ResourceName& key, const Token& token, const Values& values,
                     Entry entry) const {
  const Connection connection(db_);
  std::vector<std::string> columns;
  for (const auto& [column, value] : values) columns.push_back(column);
  const auto sql = TRY(write_sql(columns, entry));
  const TokenTexts texts(token);
  auto update = connection.prepare(sql);
  if (!update) return fail(write_error(connection, std::move(update.error())));
  texts.bind_to(update->bind(1, key.str()));
  int next = 5;
  for (const auto& [column, value] : values) {
    if (value) {
      update->bind(next++, std::string_view(*value));
    } else {
      update->bind_null(next++);
    }
  }
  if (auto ok = update->run(); !ok) return fail(write_error(connection, std::move(ok.error())));
  if (connection.changes() > 0) return {};
  return fail(refused(key, token, entry));
}

Error RowFence::refused(const ResourceName& key, const Token& token, Entry entry) const {
  const Connection connection(db_);
  const TokenTexts texts(token);
  auto count = connection.prepare(sql_.count_refusal(entry == Entry::single));
  if (!count) return std::move(count.error());
  texts.bind_to(count->bind(1, key.str()));
  auto row = count->step();
  if (!row) return std::move(row.error());
  if (*row) {
    const fence::Threshold mark{.lineage = std::string(count->text(1)),
                                .token = count->integer(0),
                                .adopted = count->integer(2) != 0,
                                .request = std::string(count->text(3))};
    if (auto done = count->step(); !done) return std::move(done.error());
    return fence::refusal(key, token, mark, entry == Entry::single);
  }
  auto look = connection.prepare(sql_.mark());
  if (!look) return std::move(look.error());
  auto there = look->bind(1, key.str()).step();
  if (!there) return std::move(there.error());
  if (!*there) return no_row(key);
  return Error(ErrorCode::unavailable,
               "the mark of row '" + key.str() + "' changed meanwhile; do it again");
}

Result<std::vector<FenceMark>> RowFence::marks() const {
  auto select = TRY(Connection(db_).prepare(sql_.marks()));
  std::vector<FenceMark> marks;
  for (;;) {
    auto row = TRY(select.step());
    if (!row) return marks;
    auto mark = TRY(mark_of(select));
    marks.push_back(std::move(mark));
  }
}

Status RowFence::adopt(std::string_view key, const Lineage& lineage, TokenNumber at_least) const {
  auto name = TRY(ResourceName::parse(key));
  return Connection(db_).durably([&] { return let_in(name, lineage, at_least); });
}

Status RowFence::let_in(const ResourceName& key, const Lineage& lineage,
                        TokenNumber at_least) const {
  const Connection connection(db_);
  const std::string from = lineage.str();
  auto update = TRY(connection.prepare(sql_.adopt()));
  update.bind(1, key.str()).bind(2, at_least.value()).bind(3, from);
  bool any = false;
  for (auto row = update.step(); !row || *row; row = update.step()) {
    if (!row) return fail(std::move(row.error()));
    any = true;
  }
  update.reset();
  if (any) return {};
  auto look = TRY(connection.prepare(sql_.mark()));
  auto there = TRY(look.bind(1, key.str()).step());
  if (!there) return fail(no_row(key));
  return fail(fence::would_lower(key, look.integer(6), at_least));
}

}  // namespace leasehold::sqlite
