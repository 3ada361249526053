#include "fence_functions.h"

#include <utility>

#include "fence/refusal.h"
#include "fence_schema.h"
#include "kit/try.h"
#include "part.h"
#include "sql/marks.h"
#include "statements.h"
#include "sweep_schema.h"

namespace leasehold::postgres {
namespace {

const Part& fence_part() {
  static const std::string ddl = std::string(kFenceSchema) + kSweepSchema;
  static const Part part = {"leasehold_fence",
                            kFenceVersion,
                            ddl.c_str(),
                            "the fence",
                            "with `leasehold fence install` or install_fence()",
                            "its marks, so that nobody may go on who held a lock before, and which "
                            "tables it guarded"};
  return part;
}

constexpr const char* kMarks =
    "SELECT resource, lineage, token, request, refused, claim, read_token, read_request"
    " FROM leasehold_fence.marks()";

Status without_rows(Result<Rows> rows) {
  if (!rows) return fail(std::move(rows.error()));
  return {};
}

Result<bool> keeps_marks(Session session) {
  auto rows = TRY(session.run("SELECT leasehold_fence.keeps_marks()", {}));
  return rows.flag(0);
}

}  // namespace

Status make_fence(Session session) {
  TRY(install_part(session, fence_part()));
  auto kept = TRY(keeps_marks(session));
  if (kept) return {};
  return without_rows(session.run("SELECT leasehold_fence.keep_marks()", {}));
}

Status check_marks_are_kept(Session session) {
  TRY(check_fence(session));
  auto kept = TRY(keeps_marks(session));
  if (kept) return {};
  return fail(fence::marks_not_kept());
}

Status check_fence(Session session) {
  return check_part(session, fence_part());
}

Status drop_fence(Session session) {
  TRY(session.check_outside());
  const auto used =
      TRY(session.run("SELECT pg_catalog.to_regnamespace('leasehold_outbox') IS NOT NULL", {}));
  if (used.flag(0)) {
    return fail(ErrorCode::invalid,
                "the outbox in this database needs the fence; if you want neither, drop the schema "
                "leasehold_outbox with its messages first");
  }
  return remove_part(session, fence_part());
}

Result<std::vector<FenceMark>> read_marks(Session session) {
  TRY(check_fence(session));
  const auto rows = TRY(session.run(kMarks, {}));
  return sql::marks_of(all_of(rows));
}

Result<std::optional<FenceMark>> read_mark(Session session, const ResourceName& resource) {
  TRY(check_fence(session));
  const auto rows = TRY(session.run(
      std::string(kMarks) + " WHERE resource OPERATOR(pg_catalog.=) $1", {resource.str().c_str()}));
  auto marks = TRY(sql::marks_of(all_of(rows)));
  if (marks.empty()) return std::nullopt;
  return std::move(marks.front());
}

Status adopt_lineage(Session session, const ResourceName& resource, const Lineage& lineage,
                     TokenNumber at_least) {
  TRY(check_fence(session));
  const std::string from = lineage.str();
  const std::string least = std::to_string(at_least.value());
  return without_rows(session.run("SELECT leasehold_fence.adopt($1, $2, $3)",
                                  {resource.str().c_str(), from.c_str(), least.c_str()}));
}

Status reset_mark(Session session, const ResourceName& resource) {
  TRY(check_fence(session));
  return without_rows(session.run("SELECT leasehold_fence.reset($1)", {resource.str().c_str()}));
}

Status count_refusal(Session session, const ResourceName& resource) {
  TRY(session.check_outside());
  return without_rows(
      session.run("SELECT leasehold_fence.count_refusal($1)", {resource.str().c_str()}));
}

Error counted(pg_conn* connection, const ResourceName& resource, Error error) {
  return sql::counted(std::move(error),
                      [&] { return count_refusal(Session(connection), resource); });
}

Result<OwnedTransaction> entered(pg_conn* connection, const ResourceName& resource,
                                 Result<Rows> rows) {
  if (rows) return OwnedTransaction(connection, TransactionId{rows->number(1)});
  return fail(counted(connection, resource, std::move(rows.error())));
}

Result<std::string> find_table(Session session, std::string_view table) {
  const std::string name(table);
  const auto missing = [&](const std::string& words) {
    return fail(ErrorCode::invalid,
                "there is no table '" + name +
                    "' in this database, or not in its search_path; write it "
                    "as in SQL: sales.orders, \"Orders\"",
                words);
  };
  if (name.find('\0') != std::string::npos) return missing("");
  auto rows = session.run("SELECT pg_catalog.to_regclass($1)::text", {name.c_str()});
  // A name that is no name in SQL: "a.b.c.d", "orders; drop".
  if (!rows && rows.error().code == ErrorCode::unavailable)
    return missing(rows.error().store_words);
  if (!rows) return fail(std::move(rows.error()));
  if (rows->is_null(0)) return missing("");
  return std::string(rows->text(0));
}

Result<sql::Table> user_table(Session session, std::string_view table) {
  TRY(session.check());
  auto name = TRY(find_table(session, table));
  return sql::Table{name, name, name, kSqlForm};
}

Status add_guard(Session session, std::string_view table, const ResourceName& resource) {
  TRY(session.check_outside());
  TRY(check_fence(session));
  auto name = TRY(find_table(session, table));
  return without_rows(session.run_read_committed("SELECT leasehold_fence.guard_table($1, $2)",
                                                 {name.c_str(), resource.str().c_str()}));
}

Status remove_guard(Session session, std::string_view table) {
  TRY(session.check_outside());
  TRY(check_fence(session));
  auto name = TRY(find_table(session, table));
  return without_rows(
      session.run_read_committed("SELECT leasehold_fence.unguard_table($1)", {name.c_str()}));
}

Result<std::vector<GuardedTable>> read_guards(Session session) {
  TRY(check_fence(session));
  const auto rows =
      TRY(session.run("SELECT table_name, resource, armed FROM leasehold_fence.guards()", {}));
  std::vector<GuardedTable> tables;
  for (int row = 0; row < rows.count(); ++row) {
    auto resource = ResourceName::parse(rows.text(1, row));
    if (!resource) {
      return fail(ErrorCode::unavailable, "the guard of table '" + std::string(rows.text(0, row)) +
                                              "' is damaged: it was not written by the fence");
    }
    tables.push_back({std::string(rows.text(0, row)), std::move(*resource), rows.flag(2, row)});
  }
  return tables;
}

}  // namespace leasehold::postgres
