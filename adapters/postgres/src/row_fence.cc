#include "leasehold/postgres/row_fence.h"

#include "fence/refusal.h"
#include "fence_functions.h"
#include "kit/try.h"

namespace leasehold::postgres {
namespace {

using sql::RowFenceSql;

Error no_row(const ResourceName& key) {
  return Error(ErrorCode::invalid, "there is no row '" + key.str() + "'");
}

// Key and token as the first four parameters, and what else is put behind.
class Filled {
 public:
  Filled(const ResourceName& key, const Token& token)
      : texts_{key.str(), std::to_string(token.number.value()), token.lineage.str(),
               token.request.hex()} {
    for (const std::string& text : texts_) pointers_.push_back(text.c_str());
  }
  Filled(const Filled&) = delete;

  // `value` must outlive this.
  void add(const RowFence::Value& value) { pointers_.push_back(value ? value->c_str() : nullptr); }
  const std::vector<const char*>& parameters() const { return pointers_; }

 private:
  std::vector<std::string> texts_;
  std::vector<const char*> pointers_;
};

// Behind RETURNING something: a crash must not lower a mark that was seen.
std::string durably(const std::string& sql) {
  return sql + ", " + kDurably;
}

}  // namespace

Status add_fence_columns(pg_conn* connection, std::string_view table) {
  const Session session(connection);
  TRY(session.check());
  auto name = TRY(find_table(session, table));
  TRY(session.run("ALTER TABLE " + name +
                      " ADD COLUMN IF NOT EXISTS fence bigint,"
                      " ADD COLUMN IF NOT EXISTS fence_lineage text,"
                      " ADD COLUMN IF NOT EXISTS fence_request text,"
                      " ADD COLUMN IF NOT EXISTS fence_refused bigint NOT NULL DEFAULT 0",
                  {}));
  return {};
}

Result<RowFence> RowFence::open(pg_conn* connection, std::string_view table, std::string_view key) {
  const Session session(connection);
  TRY(session.check());
  auto name = TRY(find_table(session, table));
  const std::string wanted(key);
  auto missing = TRY(session.run(
      "SELECT w FROM pg_catalog.unnest(ARRAY[$2, 'fence', 'fence_lineage', 'fence_request', "
      "'fence_refused']) "
      "w"
      " WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.pg_attribute"
      " WHERE attrelid OPERATOR(pg_catalog.=) $1::pg_catalog.regclass::pg_catalog.oid"
      " AND attname OPERATOR(pg_catalog.=) w AND attnum OPERATOR(pg_catalog.>) 0"
      " AND NOT attisdropped)",
      {name.c_str(), wanted.c_str()}));
  if (missing.count() > 0) {
    return fail(ErrorCode::invalid, "table " + name + " has no column '" +
                                        std::string(missing.text(0)) +
                                        "'; add_fence_columns() adds those of the fence");
  }
  return RowFence(connection, RowFenceSql(name, name, wanted, kSqlForm));
}

Result<std::vector<RowFence::Value>> RowFence::enter(std::string_view key, const Token& token,
                                                     const std::vector<std::string>& columns,
                                                     Entry entry) const {
  auto name = TRY(ResourceName::parse(key));
  const Session session(connection_);
  TRY(session.check());
  const Filled filled(name, token);
  const auto rows = TRY(
      session.run_often(durably(sql_.enter(columns, entry == Entry::single)), filled.parameters()));
  if (rows.count() == 0) return fail(refused(name, token, entry));
  std::vector<Value> values;
  for (int column = 1; column <= static_cast<int>(columns.size()); ++column) {
    if (rows.is_null(column)) {
      values.emplace_back();
    } else {
      values.emplace_back(std::string(rows.text(column)));
    }
  }
  return values;
}

Status RowFence::write(std::string_view key, const Token& token, const Values& values,
                       Entry entry) const {
  auto name = TRY(ResourceName::parse(key));
  const Session session(connection_);
  TRY(session.check());
  Filled filled(name, token);
  std::vector<std::string> columns;
  for (const auto& [column, value] : values) {
    if (value && value->find('\0') != std::string::npos) {
      return fail(ErrorCode::invalid, "the value of column '" + column + "' contains a zero byte");
    }
    columns.push_back(column);
    filled.add(value);
  }
  const auto sql = TRY(write_sql(columns, entry));
  const auto rows = TRY(session.run_often(durably(sql + " RETURNING 1"), filled.parameters()));
  if (rows.count() > 0) return {};
  return fail(refused(name, token, entry));
}

Error RowFence::refused(const ResourceName& key, const Token& token, Entry entry) const {
  const Session session(connection_);
  const Filled filled(key, token);
  auto counted =
      session.run(durably(sql_.count_refusal(entry == Entry::single)), filled.parameters());
  if (!counted) return std::move(counted.error());
  if (counted->count() > 0) {
    const fence::Threshold mark{.lineage = std::string(counted->text(1)),
                                .token = counted->number(0),
                                .adopted = counted->flag(2),
                                .request = std::string(counted->text(3))};
    return fence::refusal(key, token, mark, entry == Entry::single);
  }
  auto there = session.run(sql_.mark(), {key.str().c_str()});
  if (!there) return std::move(there.error());
  if (there->count() == 0) return no_row(key);
  return Error(ErrorCode::unavailable,
               "the mark of row '" + key.str() + "' changed meanwhile; do it again");
}

Result<std::vector<FenceMark>> RowFence::marks() const {
  const Session session(connection_);
  TRY(session.check());
  const auto rows = TRY(session.run(sql_.marks(), {}));
  std::vector<FenceMark> marks;
  for (int row = 0; row < rows.count(); ++row) {
    auto mark = TRY(mark_of(rows, row));
    marks.push_back(std::move(mark));
  }
  return marks;
}

Status RowFence::adopt(std::string_view key, const Lineage& lineage, TokenNumber at_least) const {
  auto name = TRY(ResourceName::parse(key));
  const Session session(connection_);
  TRY(session.check());
  const std::string from = lineage.str();
  const std::string least = std::to_string(at_least.value());
  auto rows =
      TRY(session.run(durably(sql_.adopt()), {name.str().c_str(), least.c_str(), from.c_str()}));
  if (rows.count() > 0) return {};
  auto there = TRY(session.run(sql_.mark(), {name.str().c_str()}));
  if (there.count() == 0) return fail(no_row(name));
  return fail(fence::would_lower(name, there.number(6), at_least));
}

}  // namespace leasehold::postgres
