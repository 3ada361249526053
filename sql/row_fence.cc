#include "leasehold/sql/row_fence.h"

#include <algorithm>
#include <cctype>

#include "fence/refusal.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "sql/marks.h"

namespace leasehold::sql {
namespace {

bool is_of_the_mark(std::string column) {
  std::transform(column.begin(), column.end(), column.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kFenceColumns.begin(), kFenceColumns.end(), column) != kFenceColumns.end();
}

Error no_row(const ResourceName& key) {
  return Error(ErrorCode::invalid, "there is no row " + kit::in_quotes(key.str()));
}

// Key and token as the first four parameters.
class Entering {
 public:
  Entering(const ResourceName& key, const Token& token)
      : key_(key.str()),
        number_(token.number.value()),
        lineage_(token.lineage.str()),
        request_(token.request.hex()) {}
  Entering(const Entering&) = delete;

  Parameters parameters() const { return {&key_, number_, &lineage_, &request_}; }

 private:
  std::string key_;
  std::int64_t number_;
  std::string lineage_;
  std::string request_;
};

}  // namespace

// For databases that know RETURNING. Parameters: 1 the row's key, 2 the token's number, 3 its
// lineage, 4 its request. A mark without a request was adopted: its number is the lowest to let in.
class RowFence::Statements {
 public:
  // `key` is qualified and quoted.
  Statements(const Table& table, const std::string& key)
      : table_(table), is_key_(table.form.infix(key, "=", parameter(1))), key_(key) {}

  // Sets the mark, and `more`. No row changed: refused, or not there.
  std::string update(bool single, const std::string& more) const {
    return "UPDATE " + table_.sql + " SET fence = " + parameter(2) +
           ", fence_lineage = " + parameter(3) + ", fence_request = " + parameter(4) + more +
           " WHERE " + is_key_ + " AND " + admits(single);
  }

  // Sets the columns to the parameters from 5 on. `invalid` if one of them is of the mark: nobody
  // but the fence sets those.
  Result<std::string> write(const std::vector<std::string>& columns, bool single) const {
    std::string more;
    int next = 5;
    for (const std::string& column : columns) {
      if (is_of_the_mark(column)) {
        return fail(ErrorCode::invalid,
                    "column '" + column + "' is part of the mark, which only the fence sets");
      }
      more += ", " + quoted(column) + " = " + parameter(next++);
    }
    return update(single, more);
  }

  // A number, then the columns.
  std::string enter(const std::vector<std::string>& columns, bool single) const {
    std::string wanted;
    for (const std::string& column : columns) {
      wanted += ", " + table_.known_as + "." + quoted(column);
    }
    return update(single, "") + " RETURNING 1" + wanted;
  }

  // Counts, if these parameters are refused: what refused them.
  std::string count_refusal(bool single) const {
    return "UPDATE " + table_.sql +
           " SET fence_refused = " + table_.form.infix("fence_refused", "+", "1") + " WHERE " +
           is_key_ + " AND NOT coalesce(" + admits(single) +
           ", false) RETURNING fence, fence_lineage,"
           " fence_lineage IS NOT NULL AND fence_request IS NULL, fence_request";
  }

  // Resource, lineage, token, request, refusals and claim as every fence has them, then `fence`.
  std::string marks() const {
    return marks_where("fence IS NOT NULL OR fence_lineage IS NOT NULL OR " +
                       table_.form.infix("fence_refused", ">", "0"));
  }
  std::string mark() const { return marks_where(is_key_); }

  // Parameters: key, the number to let in from on, lineage. No row: it would lower the mark, or the
  // row is not there.
  std::string adopt() const {
    const std::string same_lineage = compared("fence_lineage", "=", 3);
    return "UPDATE " + table_.sql + " SET fence_request = CASE WHEN " + same_lineage + " AND " +
           compared("fence", "=", 2) + " THEN fence_request END, fence = " + parameter(2) +
           ", fence_lineage = " + parameter(3) + " WHERE " + is_key_ + " AND NOT coalesce(" +
           same_lineage + " AND " + compared("fence", ">", 2) + ", false) RETURNING 1";
  }

 private:
  std::string parameter(int number) const { return table_.form.parameter(number); }
  // The column compared with that parameter.
  std::string compared(const char* column, const char* sql_operator, int number) const {
    return table_.form.infix(column, sql_operator, parameter(number));
  }

  // A number without a lineage was written by hand, as `fence = 33`: it keeps its order.
  std::string admits(bool single) const {
    return "(fence IS NULL OR " + compared("fence", "<=", 2) + ") AND (fence_lineage IS NULL OR " +
           compared("fence_lineage", "=", 3) + ") AND (" + compared("fence", "<", 2) +
           " OR fence_request IS NULL OR (" + (single ? "false" : "true") + " AND " +
           compared("fence_request", "=", 4) + "))";
  }

  std::string marks_where(const std::string& condition) const {
    return "SELECT CAST(" + key_ +
           " AS text), fence_lineage, CASE WHEN fence_request IS NOT NULL THEN fence END,"
           " fence_request, fence_refused, NULL, fence FROM " +
           table_.sql + " WHERE " + condition + " ORDER BY 1";
  }

  const Table& table_;
  const std::string is_key_;
  const std::string& key_;
};

// Columns that are read are qualified: SQLite takes an unknown quoted name for a text otherwise.
RowFence::RowFence(Run run, Table table, std::string_view key)
    : run_(std::move(run)), table_(std::move(table)), key_(table_.known_as + "." + quoted(key)) {}

Result<std::vector<Value>> RowFence::enter(std::string_view key, const Token& token,
                                           const std::vector<std::string>& columns,
                                           Entry entry) const {
  auto name = TRY(ResourceName::parse(key));
  const Entering entering(name, token);
  auto rows = TRY(run_(Statements(table_, key_).enter(columns, entry == Entry::single),
                       entering.parameters(), {.writes = true, .often = true}));
  if (rows.count() == 0) return fail(refused(name, token, entry));
  std::vector<Value> values;
  for (int column = 1; column <= static_cast<int>(columns.size()); ++column) {
    values.push_back(rows.take(column));
  }
  return values;
}

Status RowFence::write(std::string_view key, const Token& token, const Values& values,
                       Entry entry) const {
  auto name = TRY(ResourceName::parse(key));
  const Entering entering(name, token);
  Parameters parameters = entering.parameters();
  std::vector<std::string> columns;
  for (const auto& [column, value] : values) {
    columns.push_back(column);
    parameters.push_back(parameter_of(value));
  }
  const auto sql = TRY(write_sql(columns, entry));
  const auto rows = TRY(run_(sql + " RETURNING 1", parameters, {.writes = true, .often = true}));
  if (rows.count() > 0) return {};
  return fail(refused(name, token, entry));
}

Result<std::string> RowFence::write_sql(const std::vector<std::string>& columns,
                                        Entry entry) const {
  return Statements(table_, key_).write(columns, entry == Entry::single);
}

Error RowFence::refused(const ResourceName& key, const Token& token, Entry entry) const {
  const Statements statements(table_, key_);
  const bool single = entry == Entry::single;
  const Entering entering(key, token);
  auto counted = run_(statements.count_refusal(single), entering.parameters(), {.writes = true});
  if (!counted) return std::move(counted.error());
  if (counted->count() > 0) {
    const fence::Threshold mark{.lineage = std::string(counted->text(1)),
                                .token = counted->number(0),
                                .adopted = counted->flag(2),
                                .request = std::string(counted->text(3))};
    return fence::refusal(key, token, mark, single);
  }
  auto there = run_(statements.mark(), {&key.str()}, {});
  if (!there) return std::move(there.error());
  if (there->count() == 0) return no_row(key);
  return Error(ErrorCode::unavailable,
               "the mark of row " + kit::in_quotes(key.str()) + " changed meanwhile; do it again");
}

Result<std::vector<FenceMark>> RowFence::marks() const {
  const auto rows = TRY(run_(Statements(table_, key_).marks(), {}, {}));
  return marks_of(rows);
}

Status RowFence::adopt(std::string_view key, const Lineage& lineage, TokenNumber at_least) const {
  auto name = TRY(ResourceName::parse(key));
  const Statements statements(table_, key_);
  const std::string from = lineage.str();
  const auto rows =
      TRY(run_(statements.adopt(), {&name.str(), at_least.value(), &from}, {.writes = true}));
  if (rows.count() > 0) return {};
  const auto there = TRY(run_(statements.mark(), {&name.str()}, {}));
  if (there.count() == 0) return fail(no_row(name));
  return fail(fence::would_lower(name, there.number(6), at_least));
}

Error no_fence_column(const Table& table, std::string_view column) {
  return Error(ErrorCode::invalid, "table '" + table.name + "' has no column '" +
                                       std::string(column) +
                                       "'; add_fence_columns() adds those of the fence");
}

}  // namespace leasehold::sql
