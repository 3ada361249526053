#include "statements.h"

#include <deque>
#include <utility>
#include <vector>

#include "kit/try.h"

namespace leasehold::postgres {
namespace {

// A crash must not take back what was answered.
std::string durably(const std::string& sql) {
  return sql + ", " + kDurably;
}

// As libpq takes them.
class Filled {
 public:
  [[nodiscard]] Status add(const sql::Parameter& parameter) {
    if (const auto* number = std::get_if<std::int64_t>(&parameter)) {
      pointers_.push_back(numbers_.emplace_back(std::to_string(*number)).c_str());
      return {};
    }
    const auto* text = std::get<const std::string*>(parameter);
    if (text != nullptr && text->find('\0') != std::string::npos) {
      return fail(ErrorCode::invalid, "a value contains a zero byte");
    }
    pointers_.push_back(text == nullptr ? nullptr : text->c_str());
    return {};
  }
  const std::vector<const char*>& pointers() const { return pointers_; }

 private:
  std::deque<std::string> numbers_;
  std::vector<const char*> pointers_;
};

}  // namespace

sql::Rows all_of(const Rows& rows) {
  std::vector<sql::Value> values;
  for (int row = 0; row < rows.count(); ++row) {
    for (int column = 0; column < rows.columns(); ++column) {
      sql::Value& value = values.emplace_back();
      if (!rows.is_null(column, row)) value.emplace(rows.text(column, row));
    }
  }
  return sql::Rows(rows.columns(), std::move(values));
}

Result<sql::Rows> run_statement(const Session& session, const std::string& sql,
                                const sql::Parameters& parameters, sql::Purpose purpose) {
  Filled filled;
  for (const sql::Parameter& parameter : parameters) TRY(filled.add(parameter));
  const auto run = [&](const std::string& text) {
    return purpose.often ? session.run_often(text, filled.pointers())
                         : session.run(text, filled.pointers());
  };
  const auto rows = TRY(purpose.writes ? run(durably(sql)) : run(sql));
  return all_of(rows);
}

// Where a session is REPEATABLE READ by default, the server itself says that somebody was faster.
sql::Run run_for_user(PGconn* connection) {
  return [connection](const std::string& sql, const sql::Parameters& parameters,
                      sql::Purpose purpose) -> Result<sql::Rows> {
    const Session session(connection);
    TRY(session.check());
    const bool inside = PQtransactionStatus(connection) != PQTRANS_IDLE;
    auto rows = run_statement(session, sql, parameters, purpose);
    if (!rows && purpose.may_lose && !inside && is_conflict(rows.error())) return sql::Rows();
    return rows;
  };
}

}  // namespace leasehold::postgres
