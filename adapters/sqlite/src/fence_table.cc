#include "fence_table.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "guard.h"
#include "kit/try.h"
#include "name_sql.h"
#include "outbox.h"
#include "schema.h"

namespace leasehold::sqlite {
namespace {

constexpr Part kFence = {"fence", 2,
                         "install it with `leasehold fence install` or install_fence()"};

constexpr std::string_view kFencedOut = "leasehold: fenced_out";
constexpr std::string_view kInvalid = "leasehold: invalid";

// Every check is a RAISE and none a constraint:
// a caller's INSERT OR IGNORE overrides the conflict handling of the statements in a trigger, but
// not a RAISE.
constexpr std::string_view kTable = R"sql(
CREATE TABLE main.leasehold_fence(
  resource TEXT NOT NULL PRIMARY KEY,
  lineage TEXT,
  token INTEGER,
  request TEXT,
  least INTEGER,
  claim TEXT,
  accepted INTEGER NOT NULL DEFAULT 0,
  refused INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE VIEW main.leasehold_enter AS
  SELECT resource, token, lineage, request, 0 AS single_entry FROM leasehold_fence;
CREATE VIEW main.leasehold_claim AS SELECT resource, claim AS request FROM leasehold_fence;
CREATE VIEW main.leasehold_confirm AS SELECT resource, claim AS request FROM leasehold_fence;
)sql";

// As main.sqlite_master has its text behind CREATE TRIGGER, which begins with the name.
struct Keeper {
  const char* name;
  const char* text;
};

// A fence of an earlier program gets them when it is installed again. INSERT OR REPLACE removes a
// row without a DELETE that a trigger could see.
constexpr std::array<Keeper, 3> kKeepers = {{
    {"leasehold_fence_keep", R"sql(leasehold_fence_keep BEFORE DELETE ON leasehold_fence BEGIN
  SELECT RAISE(ABORT, 'leasehold: invalid: a mark is kept as long as its resource');
END)sql"},
    {"leasehold_fence_once", R"sql(leasehold_fence_once BEFORE INSERT ON leasehold_fence
WHEN EXISTS(SELECT 1 FROM leasehold_fence WHERE resource = NEW.resource) BEGIN
  SELECT RAISE(ABORT, 'leasehold: invalid: a mark is there already, and is kept');
END)sql"},
    {"leasehold_fence_stay", R"sql(leasehold_fence_stay BEFORE UPDATE ON leasehold_fence
WHEN NEW.resource IS NOT OLD.resource OR NEW.lineage IS OLD.lineage
  AND coalesce(NEW.token, NEW.least, 0) < coalesce(OLD.token, OLD.least) BEGIN
  SELECT RAISE(ABORT, 'leasehold: invalid: a mark never goes down, and belongs to its resource');
END)sql"},
}};

Result<bool> is_there(Connection connection, const Keeper& keeper) {
  auto select =
      TRY(connection.prepare("SELECT 1 FROM main.sqlite_master"
                             " WHERE type = 'trigger' AND sql = 'CREATE TRIGGER ' || ?1"));
  return select.bind(1, std::string_view(keeper.text)).step();
}

Result<bool> keeps_marks(Connection connection) {
  for (const Keeper& keeper : kKeepers) {
    auto there = is_there(connection, keeper);
    if (!there || !*there) return there;
  }
  return true;
}

// One of its name may be on another table.
std::string keepers() {
  std::string sql;
  for (const Keeper& keeper : kKeepers) {
    sql += std::string("DROP TRIGGER IF EXISTS main.") + keeper.name + ";\nCREATE TRIGGER main." +
           keeper.text + ";\n";
  }
  return sql;
}

Status keep_marks(Connection connection) {
  auto transaction = TRY(Transaction::begin(connection));
  TRY(connection.exec(keepers().c_str()));
  return transaction.commit();
}

// The triggers go with their table or view.
constexpr const char* kDropTable = R"sql(
DROP VIEW main.leasehold_enter;
DROP VIEW main.leasehold_claim;
DROP VIEW main.leasehold_confirm;
DROP TABLE main.leasehold_fence;
)sql";

std::string refuse(std::string_view words, std::string_view where) {
  return "  SELECT RAISE(ABORT, 'leasehold: " + std::string(words) + "') WHERE " +
         std::string(where) + ";\n";
}

std::string refuse_mark(std::string_view words, std::string_view where) {
  return refuse(words, "EXISTS(SELECT 1 FROM leasehold_fence WHERE resource = NEW.resource AND " +
                           std::string(where) + ")");
}

std::string not_hex(const std::string& text) {
  return "length(" + text + ") <> 32 OR " + text + " GLOB '*[^0-9a-f]*'";
}

std::string check_resource() {
  return refuse("invalid: resource must be 1 to 512 bytes of text without control characters",
                not_text("NEW.resource") + " OR " + not_a_name("NEW.resource"));
}

std::string check_request() {
  return refuse("invalid: request must be text of 32 lower-case hexadecimal digits",
                not_text("NEW.request") + " OR " + not_hex("NEW.request"));
}

std::string check_token() {
  return refuse("invalid: token must be an integer from 1 to 9223372036854775807",
                "typeof(NEW.token) <> 'integer' OR NEW.token < 1");
}

std::string check_lineage() {
  return refuse(
      "invalid: lineage must be text of 32 lower-case hexadecimal digits, a slash and the lock "
      "name",
      not_text("NEW.lineage") + " OR " + not_hex("substr(NEW.lineage, 1, 32)") +
          " OR substr(NEW.lineage, 33, 1) <> '/' OR " + not_a_name("substr(NEW.lineage, 34)"));
}

std::string check_once() {
  return refuse("invalid: single_entry must be 0, 1 or left out",
                "NEW.single_entry IS NOT NULL AND (typeof(NEW.single_entry) <> 'integer'"
                " OR NEW.single_entry NOT IN (0, 1))");
}

std::string add_row() {
  return "  INSERT INTO leasehold_fence(resource) SELECT NEW.resource WHERE NOT EXISTS(\n"
         "    SELECT 1 FROM leasehold_fence WHERE resource = NEW.resource);\n";
}

std::string trigger(std::string_view view, const std::string& body) {
  return "CREATE TRIGGER main." + std::string(view) + "_check INSTEAD OF INSERT ON " +
         std::string(view) + " BEGIN\n" + body + "END;\n";
}

std::string enter_trigger() {
  return trigger(
      "leasehold_enter",
      check_resource() + check_token() + check_lineage() + check_request() + check_once() +
          refuse_mark("invalid: this resource is used with claims, not with tokens",
                      "claim IS NOT NULL") +
          refuse_mark("fenced_out: the token is of another lineage", "lineage <> NEW.lineage") +
          refuse_mark("fenced_out: a higher token has entered",
                      "NEW.token < coalesce(token, least)") +
          refuse_mark("fenced_out: this token has entered from another request",
                      "token = NEW.token AND request <> NEW.request") +
          refuse_mark("fenced_out: this token has entered once",
                      "token = NEW.token AND NEW.single_entry = 1") +
          add_row() +
          "  UPDATE leasehold_fence SET lineage = NEW.lineage, token = NEW.token,\n"
          "    request = NEW.request, accepted = accepted + 1 WHERE resource = NEW.resource;\n");
}

std::string claim_trigger() {
  return trigger("leasehold_claim",
                 check_resource() + check_request() +
                     refuse_mark("invalid: this resource is used with tokens, not with claims",
                                 "lineage IS NOT NULL") +
                     add_row() +
                     "  UPDATE leasehold_fence SET claim = NEW.request, accepted = accepted + 1\n"
                     "    WHERE resource = NEW.resource;\n");
}

std::string confirm_trigger() {
  return trigger("leasehold_confirm",
                 check_resource() + check_request() +
                     refuse("fenced_out: another request has claimed this resource",
                            "NOT EXISTS(SELECT 1 FROM leasehold_fence WHERE"
                            " resource = NEW.resource AND claim = NEW.request)") +
                     "  UPDATE leasehold_fence SET accepted = accepted + 1"
                     " WHERE resource = NEW.resource;\n");
}

constexpr std::string_view kColumns =
    "SELECT resource, lineage, token, request, refused, claim FROM main.leasehold_fence ";

Status ensure_row(Connection connection, const ResourceName& resource) {
  auto insert = TRY(
      connection.prepare("INSERT INTO main.leasehold_fence(resource) SELECT ?1 WHERE NOT EXISTS("
                         "SELECT 1 FROM main.leasehold_fence WHERE resource = ?1)"));
  return insert.bind(1, resource.str()).run();
}

Status write_adoption(Connection connection, const ResourceName& resource, const Lineage& lineage,
                      TokenNumber at_least) {
  TRY(ensure_row(connection, resource));
  auto update = TRY(connection.prepare(
      "UPDATE main.leasehold_fence SET lineage = ?2, least = ?3, token = NULL, request = NULL,"
      " claim = NULL WHERE resource = ?1"));
  const std::string text = lineage.str();
  return update.bind(1, resource.str()).bind(2, text).bind(3, at_least.value()).run();
}

Status adopt(Connection connection, const ResourceName& resource, const Lineage& lineage,
             TokenNumber at_least) {
  auto transaction = TRY(Transaction::begin(connection));
  auto threshold = TRY(read_threshold(connection, resource));
  const bool same = threshold && threshold->lineage == lineage.str();
  if (same && threshold->token == at_least.value()) return {};
  if (same && threshold->token > at_least.value()) {
    return fail(fence::would_lower(resource, threshold->token, at_least));
  }
  TRY(write_adoption(connection, resource, lineage, at_least));
  return transaction.commit();
}

Status reset(Connection connection, const ResourceName& resource) {
  auto update = TRY(connection.prepare(
      "UPDATE main.leasehold_fence SET lineage = NULL, least = NULL, token = NULL, request = NULL,"
      " claim = NULL WHERE resource = ?1"));
  TRY(update.bind(1, resource.str()).run());
  if (connection.changes() == 1) return {};
  return fail(fence::unknown_resource(resource));
}

}  // namespace

Status make_fence(Connection connection) {
  return connection.durably([&]() -> Status {
    auto installed = install_part(
        connection, kFence,
        std::string(kTable) + keepers() + enter_trigger() + claim_trigger() + confirm_trigger());
    if (!installed) return installed;
    auto kept = TRY(keeps_marks(connection));
    return kept ? Status() : keep_marks(connection);
  });
}

Status check_fence(Connection connection) {
  return check_part(connection, kFence);
}

Status check_marks_are_kept(Connection connection) {
  TRY(check_fence(connection));
  auto kept = TRY(keeps_marks(connection));
  if (kept) return {};
  return fail(fence::marks_not_kept());
}

Status drop_fence(Connection connection) {
  return remove_parts(connection, {guard_part(), kFence}, [&]() -> Status {
    const auto used = TRY(has_part(connection, outbox_part()));
    if (used) {
      return fail(
          ErrorCode::invalid,
          "the outbox in this database needs the fence; if you want neither, first run: "
          "DROP TABLE leasehold_outbox; DELETE FROM leasehold_version WHERE part = 'outbox'");
    }
    TRY(drop_guards(connection));
    return connection.exec(kDropTable);
  });
}

Result<std::vector<FenceMark>> read_marks(Connection connection) {
  TRY(check_fence(connection));
  const auto rows = TRY(connection.run(std::string(kColumns) + "ORDER BY resource", {}));
  return sql::marks_of(rows);
}

Result<std::optional<FenceMark>> read_mark(Connection connection, const ResourceName& resource) {
  TRY(check_fence(connection));
  const auto rows =
      TRY(connection.run(std::string(kColumns) + "WHERE resource = ?1", {&resource.str()}));
  auto marks = TRY(sql::marks_of(rows));
  if (marks.empty()) return std::nullopt;
  return std::move(marks.front());
}

Result<std::optional<Threshold>> read_threshold(Connection connection,
                                                const ResourceName& resource) {
  auto select = TRY(connection.prepare(
      "SELECT lineage, coalesce(token, least), token IS NULL, request FROM main.leasehold_fence"
      " WHERE resource = ?1 AND lineage IS NOT NULL"));
  auto row = TRY(select.bind(1, resource.str()).step());
  if (!row) return std::nullopt;
  return Threshold{.lineage = std::string(select.text(0)),
                   .token = select.integer(1),
                   .adopted = select.integer(2) != 0,
                   .request = std::string(select.text(3))};
}

Status count_refusal(Connection connection, const ResourceName& resource) {
  if (connection.in_transaction()) {
    return fail(ErrorCode::invalid, "a refusal is counted after its transaction was rolled back");
  }
  auto transaction = TRY(Transaction::begin(connection));
  TRY(ensure_row(connection, resource));
  auto count = TRY(connection.prepare(
      "UPDATE main.leasehold_fence SET refused = refused + 1 WHERE resource = ?1"));
  TRY(count.bind(1, resource.str()).run());
  return transaction.commit();
}

Status adopt_lineage(Connection connection, const ResourceName& resource, const Lineage& lineage,
                     TokenNumber at_least) {
  TRY(check_fence(connection));
  return connection.durably([&] { return adopt(connection, resource, lineage, at_least); });
}

Status reset_mark(Connection connection, const ResourceName& resource) {
  TRY(check_fence(connection));
  return connection.durably([&] { return reset(connection, resource); });
}

bool has_snapshot(Connection connection) {
  return sqlite3_txn_state(connection.handle(), "main") == SQLITE_TXN_READ;
}

Error entry_error(Connection connection, Error error, bool had_read) {
  const int code = sqlite3_extended_errcode(connection.handle());
  if (code == SQLITE_CONSTRAINT_TRIGGER) {
    const std::string_view words = error.store_words;
    if (words.starts_with(kFencedOut)) return Error(ErrorCode::fenced_out, {}, error.store_words);
    if (words.starts_with(kInvalid)) {
      return Error(ErrorCode::invalid, std::string(words.substr(kInvalid.size() + 2)),
                   error.store_words);
    }
  }
  if ((code & 0xff) == SQLITE_BUSY && had_read) {
    return Error(ErrorCode::unavailable,
                 "this transaction had read before it entered the fence, and somebody else writes "
                 "or has written since; roll back, begin again, and enter before reading",
                 error.store_words);
  }
  if ((code & 0xff) == SQLITE_ERROR) {
    if (auto ok = check_fence(connection); !ok) return std::move(ok.error());
    return Error(ErrorCode::unavailable,
                 "the fence in this database does not work: its view or trigger is missing",
                 error.store_words);
  }
  return error;
}

}  // namespace leasehold::sqlite
