#include "guard.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "fence_table.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"

namespace leasehold::sqlite {
namespace {

constexpr Part kGuard = {"guard", 1, "install it with `leasehold fence install --table`",
                         "`leasehold fence remove URL --force`, and install it; it forgets its "
                         "marks, and which tables it guarded"};

// No committed state has a row in leasehold_inside: '' is nobody's resource, so its reference is
// never fulfilled. That is only so where foreign keys are enforced, hence the check on entering.
constexpr const char* kTables = R"sql(
CREATE TABLE main.leasehold_guard(
  id INTEGER PRIMARY KEY,
  table_name TEXT NOT NULL UNIQUE COLLATE NOCASE,
  resource TEXT NOT NULL
);
CREATE TABLE main.leasehold_inside(
  resource TEXT NOT NULL PRIMARY KEY,
  delete_before_commit TEXT NOT NULL DEFAULT ''
    REFERENCES leasehold_inside(resource) DEFERRABLE INITIALLY DEFERRED
);
)sql";

// Beside the view's own check, which may come before or after: a refusal undoes both.
std::string go_inside(const std::string& view) {
  return "CREATE TRIGGER main." + view + "_inside INSTEAD OF INSERT ON " + view +
         R"sql(
WHEN EXISTS(SELECT 1 FROM leasehold_guard WHERE resource = NEW.resource) BEGIN
  SELECT RAISE(ABORT, 'leasehold: invalid: this resource guards a table, which needs PRAGMA foreign_keys = ON')
    WHERE NOT (SELECT foreign_keys FROM pragma_foreign_keys);
  INSERT INTO leasehold_inside(resource) SELECT NEW.resource WHERE NOT EXISTS(
    SELECT 1 FROM leasehold_inside WHERE resource = NEW.resource);
END;
)sql";
}

std::string quoted(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) {
    out += c;
    if (c == quote) out += c;
  }
  return out + quote;
}

constexpr std::array<const char*, 3> kOperations = {"INSERT", "UPDATE", "DELETE"};

std::string trigger_name(std::int64_t guard, const char* operation) {
  return "leasehold_guard_" + std::to_string(guard) + "_" + operation;
}

struct Guard {
  std::int64_t id = 0;
  std::string made_for;  // the table's name when it was made, which its triggers tell
  GuardedTable what;     // by the name that the table has now
};

// As main.sqlite_master has it. SQLite writes the new name of a table into it, but not into texts.
std::string trigger_text(const Guard& guard, const char* operation) {
  const std::string& resource = guard.what.resource.str();
  const std::string words = "leasehold: not_entered: table " + guard.made_for +
                            " is written only in a transaction that has entered the fence of "
                            "resource " +
                            resource;
  return trigger_name(guard.id, operation) + " BEFORE " + operation + " ON " +
         quoted(guard.what.table, '"') +
         " WHEN NOT EXISTS(SELECT 1 FROM leasehold_inside WHERE resource = " +
         quoted(resource, '\'') + ") BEGIN SELECT RAISE(ABORT, " + quoted(words, '\'') + "); END";
}

bool is_same_name(const std::string& a, const std::string& b) {
  return sqlite3_stricmp(a.c_str(), b.c_str()) == 0;
}

bool is_own(std::string_view table) {
  return sqlite3_strnicmp(table.data(), "leasehold_", 10) == 0 ||
         sqlite3_strnicmp(table.data(), "sqlite_", 7) == 0;
}

struct Trigger {
  std::string table;
  std::string text;
};
using Triggers = std::map<std::string, Trigger>;

// By name; one pass, however many guards there are.
Result<Triggers> list_triggers(Connection connection) {
  auto select = TRY(connection.prepare(
      "SELECT name, tbl_name, substr(sql, 1 + length('CREATE TRIGGER ')) FROM main.sqlite_master"
      " WHERE type = 'trigger' AND name GLOB 'leasehold_guard_*'"));
  Triggers triggers;
  while (TRY(select.step())) {
    triggers[std::string(select.text(0))] = {std::string(select.text(1)),
                                             std::string(select.text(2))};
  }
  return triggers;
}

// How many of its triggers are there, as they were made, on the table that `guard` says.
int count_triggers(const Triggers& triggers, const Guard& guard) {
  return static_cast<int>(
      std::count_if(kOperations.begin(), kOperations.end(), [&](const char* operation) {
        const auto found = triggers.find(trigger_name(guard.id, operation));
        return found != triggers.end() && found->second.text == trigger_text(guard, operation);
      }));
}

// A table that was renamed took its triggers with it.
void look_for_triggers(const Triggers& triggers, Guard& guard) {
  std::vector<std::string> tables = {guard.made_for};
  for (const char* operation : kOperations) {
    const auto found = triggers.find(trigger_name(guard.id, operation));
    if (found == triggers.end()) continue;
    const std::string& table = found->second.table;
    if (std::find(tables.begin(), tables.end(), table) == tables.end()) tables.push_back(table);
  }
  int most = 0;
  for (const std::string& table : tables) {
    Guard there = guard;
    there.what.table = table;
    const int count = count_triggers(triggers, there);
    if (count <= most) continue;
    most = count;
    guard.what.table = table;
    guard.what.armed = count == int{kOperations.size()};
  }
}

Result<std::vector<Guard>> list_guards(Connection connection) {
  auto select = TRY(connection.prepare(
      "SELECT id, table_name, resource FROM main.leasehold_guard ORDER BY table_name"));
  const auto triggers = TRY(list_triggers(connection));
  std::vector<Guard> guards;
  for (;;) {
    auto row = TRY(select.step());
    if (!row) return guards;
    const std::string table(select.text(1));
    auto resource = ResourceName::parse(select.text(2));
    if (!resource) {
      return fail(ErrorCode::unavailable,
                  "the guard of table '" + table + "' is damaged: it was not written by the fence");
    }
    Guard guard{select.integer(0), table, {table, std::move(*resource), /*armed=*/false}};
    look_for_triggers(triggers, guard);
    guards.push_back(std::move(guard));
  }
}

Result<std::optional<Guard>> find_guard(Connection connection, std::string_view table) {
  auto guards = TRY(list_guards(connection));
  const std::string wanted(table);
  for (Guard& guard : guards) {
    if (is_same_name(guard.what.table, wanted)) return std::move(guard);
  }
  return std::nullopt;
}

Status drop_triggers(Connection connection, std::int64_t guard) {
  for (const char* operation : kOperations) {
    const std::string sql = "DROP TRIGGER IF EXISTS main." + trigger_name(guard, operation);
    TRY(connection.exec(sql.c_str()));
  }
  return {};
}

Status forget(Connection connection, std::int64_t guard) {
  TRY(drop_triggers(connection, guard));
  auto erase = TRY(connection.prepare("DELETE FROM main.leasehold_guard WHERE id = ?1"));
  return erase.bind(1, guard).run();
}

Status create(Connection connection, const GuardedTable& what) {
  auto insert = TRY(connection.prepare(
      "INSERT INTO main.leasehold_guard(table_name, resource) VALUES(?1, ?2) RETURNING id"));
  TRY(insert.bind(1, what.table).bind(2, what.resource.str()).step());
  const Guard guard{insert.integer(0), what.table, what};
  insert.reset();
  for (const char* operation : kOperations) {
    const std::string sql = "CREATE TRIGGER main." + trigger_text(guard, operation);
    TRY(connection.exec(sql.c_str()));
  }
  return {};
}

// Makes the guards of renamed tables anew, so that another table may have the name they were made
// for. A guard whose table is gone gives way to that of the table which has its name now.
Status settle(Connection connection) {
  auto guards = TRY(list_guards(connection));
  std::vector<GuardedTable> renamed;
  for (const Guard& guard : guards) {
    if (guard.what.table == guard.made_for) continue;
    renamed.push_back(guard.what);
    for (const Guard& other : guards) {
      if (other.id != guard.id && !is_same_name(other.made_for, guard.what.table)) continue;
      TRY(forget(connection, other.id));
    }
  }
  for (const GuardedTable& what : renamed) {
    TRY(create(connection, what));
  }
  return {};
}

Status check_outside(Connection connection) {
  if (!connection.in_transaction()) return {};
  return fail(ErrorCode::invalid, "guarding needs a connection without an open transaction");
}

Status guard(Connection connection, std::string_view table, const ResourceName& resource) {
  auto installed = install_part(
      connection, kGuard, kTables + go_inside("leasehold_enter") + go_inside("leasehold_confirm"));
  if (!installed) return installed;

  auto transaction = TRY(Transaction::begin(connection));
  auto name = TRY(find_table(connection, table));
  TRY(settle(connection));
  auto there = TRY(find_guard(connection, name));
  if (there && there->what.armed) {
    const ResourceName& guarding = there->what.resource;
    if (guarding == resource) return {};
    return fail(ErrorCode::invalid, "table '" + name + "' is guarded by resource " +
                                        kit::in_quotes(guarding.str()) +
                                        " already; remove that guard first");
  }
  if (there) {
    TRY(forget(connection, there->id));
  }
  TRY(create(connection, {name, resource, /*armed=*/true}));
  return transaction.commit();
}

}  // namespace

const Part& guard_part() {
  return kGuard;
}

Result<std::string> find_table(Connection connection, std::string_view table) {
  auto select =
      TRY(connection.prepare("SELECT name, type, sql LIKE 'CREATE VIRTUAL%' FROM main.sqlite_master"
                             " WHERE name = ?1 COLLATE NOCASE AND type IN ('table', 'view')"));
  auto row = TRY(select.bind(1, table).step());
  const std::string shown = "'" + std::string(table) + "'";
  if (!row) return fail(ErrorCode::invalid, "there is no table " + shown + " in this database");
  const std::string name(select.text(0));
  if (select.text(1) == "view" || select.integer(2) != 0) {
    return fail(ErrorCode::invalid, shown + " is a " +
                                        (select.text(1) == "view" ? "view" : "virtual table") +
                                        ", which cannot be guarded; guard the tables below it");
  }
  if (is_own(name)) {
    return fail(ErrorCode::invalid, shown + " is not a table of yours, and cannot be guarded");
  }
  return name;
}

Result<sql::Table> user_table(Connection connection, std::string_view table) {
  auto name = TRY(find_table(connection, table));
  const std::string known_as = sql::quoted(name);
  return sql::Table{std::move(name), "main." + known_as, known_as, {.sign = '?'}};
}

Status add_guard(Connection connection, std::string_view table, const ResourceName& resource) {
  TRY(check_outside(connection));
  TRY(check_fence(connection));
  TRY(find_table(connection, table));
  return connection.durably([&] { return guard(connection, table, resource); });
}

Status remove_guard(Connection connection, std::string_view table) {
  TRY(check_outside(connection));
  TRY(check_fence(connection));
  const auto missing = [&] {
    return fail(ErrorCode::invalid, "table '" + std::string(table) + "' is not guarded");
  };
  auto any = TRY(has_part(connection, kGuard));
  if (!any) return missing();
  auto transaction = TRY(Transaction::begin(connection));
  TRY(settle(connection));
  auto there = TRY(find_guard(connection, table));
  if (!there) return missing();
  TRY(forget(connection, there->id));
  return transaction.commit();
}

Result<std::vector<GuardedTable>> read_guards(Connection connection) {
  std::vector<GuardedTable> tables;
  auto any = TRY(has_part(connection, kGuard));
  if (!any) return tables;
  auto guards = TRY(list_guards(connection));
  for (Guard& guard : guards) tables.push_back(std::move(guard.what));
  return tables;
}

Status leave_guards(Connection connection) {
  const bool there =
      sqlite3_table_column_metadata(connection.handle(), "main", "leasehold_inside", nullptr,
                                    nullptr, nullptr, nullptr, nullptr, nullptr) == SQLITE_OK;
  if (!there) return {};
  return connection.exec("DELETE FROM main.leasehold_inside");
}

Status drop_guards(Connection connection) {
  auto any = TRY(has_part(connection, kGuard));
  if (!any) return {};
  auto guards = TRY(list_guards(connection));
  for (const Guard& guard : guards) {
    TRY(drop_triggers(connection, guard.id));
  }
  return connection.exec("DROP TABLE main.leasehold_guard; DROP TABLE main.leasehold_inside");
}

}  // namespace leasehold::sqlite
