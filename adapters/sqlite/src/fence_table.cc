#include "fence_table.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "fence/refusal.h"
#include "fence/rule.h"
#include "guard.h"
#include "kit/try.h"
#include "name_sql.h"
#include "outbox.h"
#include "schema.h"

namespace leasehold::sqlite {
namespace {

constexpr Part kFence = {"fence", 3, "install it with `leasehold fence install` or install_fence()",
                         "stop all programs that use it, `leasehold fence remove URL --force`, and "
                         "install it; it forgets its marks, so that nobody may go on who held a "
                         "lock before, and which tables it guarded"};

constexpr std::string_view kFencedOut = "leasehold: fenced_out";
constexpr std::string_view kInvalid = "leasehold: invalid";

// Every check is a RAISE and none a constraint:
// a caller's INSERT OR IGNORE overrides the conflict handling of the statements in a trigger, but
// not a RAISE.
//
// leasehold_fence: `floor` is what the first reader found where there was no mark, and goes when a
// writer comes. A row without a number counts refusals, and is no mark unless is_reset says so.
// leasehold_floor has no row until somebody sweeps or admits.
constexpr std::string_view kTables = R"sql(
CREATE TABLE main.leasehold_fence(
  resource TEXT NOT NULL PRIMARY KEY,
  lineage TEXT,
  token INTEGER,
  request TEXT,
  read_token INTEGER,
  read_request TEXT,
  least INTEGER,
  floor INTEGER,
  is_reset INTEGER NOT NULL DEFAULT 0,
  claim TEXT,
  accepted INTEGER NOT NULL DEFAULT 0,
  refused INTEGER NOT NULL DEFAULT 0,
  entered_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER))
) WITHOUT ROWID;
CREATE TABLE main.leasehold_floor(
  store TEXT NOT NULL PRIMARY KEY,
  floor INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE VIEW main.leasehold_enter AS
  SELECT resource, token, lineage, request, 0 AS single_entry FROM leasehold_fence;
CREATE VIEW main.leasehold_enter_to_read AS
  SELECT resource, read_token AS token, lineage, read_request AS request FROM leasehold_fence;
CREATE VIEW main.leasehold_claim AS SELECT resource, claim AS request FROM leasehold_fence;
CREATE VIEW main.leasehold_confirm AS SELECT resource, claim AS request FROM leasehold_fence;
CREATE VIEW main.leasehold_count_refusal AS SELECT resource FROM leasehold_fence;
)sql";

// As main.sqlite_master has its text behind CREATE TRIGGER, which begins with the name.
struct Keeper {
  const char* name;
  const char* text;
};

// INSERT OR REPLACE removes a row without a DELETE that a trigger could see. A mark may go when all
// tokens up to it are refused without it.
constexpr std::array<Keeper, 6> kKeepers = {{
    {"leasehold_fence_keep", R"sql(leasehold_fence_keep BEFORE DELETE ON leasehold_fence
WHEN (OLD.claim IS NULL AND OLD.least IS NULL AND NOT OLD.is_reset
  AND CASE WHEN coalesce(OLD.lineage, OLD.token, OLD.read_token) IS NULL THEN true
    ELSE max(coalesce(OLD.token, 0), coalesce(OLD.read_token, 0)) <=
      (SELECT floor FROM leasehold_floor WHERE store = substr(OLD.lineage, 1, 32)) END)
  IS NOT TRUE BEGIN
  SELECT RAISE(ABORT, 'leasehold: invalid: a mark is kept as long as its resource, or swept');
END)sql"},
    {"leasehold_fence_once", R"sql(leasehold_fence_once BEFORE INSERT ON leasehold_fence
WHEN EXISTS(SELECT 1 FROM leasehold_fence WHERE resource = NEW.resource) BEGIN
  SELECT RAISE(ABORT, 'leasehold: invalid: a mark is there already, and is kept');
END)sql"},
    {"leasehold_fence_stay", R"sql(leasehold_fence_stay BEFORE UPDATE ON leasehold_fence
WHEN NEW.resource IS NOT OLD.resource OR NEW.lineage IS OLD.lineage
  AND (coalesce(NEW.token, NEW.least, NEW.floor, 0) < coalesce(OLD.token, OLD.least, OLD.floor)
    OR max(coalesce(NEW.token, NEW.least, 0), coalesce(NEW.read_token, 0)) < OLD.read_token) BEGIN
  SELECT RAISE(ABORT, 'leasehold: invalid: a mark never goes down, and belongs to its resource');
END)sql"},
    {"leasehold_floor_keep", R"sql(leasehold_floor_keep BEFORE DELETE ON leasehold_floor BEGIN
  SELECT RAISE(ABORT, 'leasehold: invalid: a floor is kept: it stands for the marks that were swept');
END)sql"},
    {"leasehold_floor_once", R"sql(leasehold_floor_once BEFORE INSERT ON leasehold_floor
WHEN EXISTS(SELECT 1 FROM leasehold_floor WHERE store = NEW.store) BEGIN
  SELECT RAISE(ABORT, 'leasehold: invalid: a floor is there already, and is kept');
END)sql"},
    {"leasehold_floor_stay", R"sql(leasehold_floor_stay BEFORE UPDATE ON leasehold_floor
WHEN NEW.store IS NOT OLD.store OR NEW.floor < OLD.floor BEGIN
  SELECT RAISE(ABORT, 'leasehold: invalid: a floor never goes down, and belongs to its store');
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
// IF EXISTS: an earlier version has not all of them.
constexpr const char* kDropTables = R"sql(
DROP VIEW IF EXISTS main.leasehold_enter;
DROP VIEW IF EXISTS main.leasehold_enter_to_read;
DROP VIEW IF EXISTS main.leasehold_claim;
DROP VIEW IF EXISTS main.leasehold_confirm;
DROP VIEW IF EXISTS main.leasehold_count_refusal;
DROP TABLE IF EXISTS main.leasehold_fence;
DROP TABLE IF EXISTS main.leasehold_floor;
)sql";

std::string refuse(std::string_view words, std::string_view where) {
  return "  SELECT RAISE(ABORT, 'leasehold: " + std::string(words) + "') WHERE " +
         std::string(where) + ";\n";
}

std::string refuse_mark(std::string_view words, std::string_view where) {
  return refuse(words, "EXISTS(SELECT 1 FROM leasehold_fence WHERE resource = NEW.resource AND (" +
                           std::string(where) + "))");
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

// Where SQL asks about a token at a resource: in a trigger, or in a statement of ours, from which a
// temporary table of the user's must be kept out.
struct Asked {
  std::string schema;
  std::string resource;
  std::string store;

  std::string mark() const {
    return "FROM " + schema + "leasehold_fence WHERE resource = " + resource +
           " AND (token IS NOT NULL OR read_token IS NOT NULL OR least IS NOT NULL"
           " OR claim IS NOT NULL OR is_reset)";
  }
  std::string floor_of_store() const {
    return "FROM " + schema + "leasehold_floor WHERE store = " + store;
  }
  std::string floor() const {
    return "coalesce((SELECT coalesce(floor, 0) " + mark() + "), (SELECT floor " +
           floor_of_store() + "), 0)";
  }
  std::string is_unknown() const {
    return "(NOT EXISTS(SELECT 1 " + mark() + ") AND NOT EXISTS(SELECT 1 " + floor_of_store() +
           ") AND EXISTS(SELECT 1 FROM " + schema + "leasehold_floor WHERE floor > 0))";
  }
};

const Asked& in_trigger() {
  static const Asked asked{"", "NEW.resource", "substr(NEW.lineage, 1, 32)"};
  return asked;
}

constexpr std::string_view kNow = "CAST(strftime('%s', 'now') AS INTEGER)";

std::string check_entry() {
  return check_resource() + check_token() + check_lineage() + check_request();
}

// What nobody gets past, be it to read or to write.
std::string refuse_any() {
  return refuse_mark("invalid: this resource is used with claims, not with tokens",
                     "claim IS NOT NULL") +
         refuse_mark("fenced_out: the token is of another lineage", "lineage <> NEW.lineage") +
         refuse(
             "fenced_out: marks were swept, and the store of this token is not known; if its "
             "tokens are to be let in, an operator runs `leasehold fence admit URL STORE_ID`",
             in_trigger().is_unknown()) +
         refuse(
             "fenced_out: marks up to a higher token were swept; take the lock anew: its next "
             "token is higher",
             "NEW.token <= " + in_trigger().floor()) +
         refuse_mark("fenced_out: a higher token has entered",
                     "NEW.token < coalesce(token, least)") +
         refuse_mark("fenced_out: this token has entered from another request",
                     "token = NEW.token AND request <> NEW.request"
                     " OR read_token = NEW.token AND read_request <> NEW.request");
}

// So that no store becomes unknown which enters while a sweep looks for those that have.
std::string know_store(const Asked& asked) {
  return "  INSERT INTO " + asked.schema + "leasehold_floor(store) SELECT " + asked.store +
         " WHERE EXISTS(SELECT 1 FROM " + asked.schema + "leasehold_floor)\n    AND NOT EXISTS(" +
         "SELECT 1 " + asked.floor_of_store() + ");\n";
}

std::string enter_trigger() {
  return trigger(
      "leasehold_enter",
      check_entry() + check_once() + refuse_any() +
          refuse_mark("fenced_out: a higher token has entered to read", "NEW.token < read_token") +
          refuse_mark("fenced_out: this token has entered once",
                      "token = NEW.token AND NEW.single_entry = 1") +
          add_row() +
          "  UPDATE leasehold_fence SET lineage = NEW.lineage, token = NEW.token,\n"
          "    request = NEW.request, read_token = NULL, read_request = NULL, floor = NULL,\n"
          "    accepted = accepted + 1, entered_at = " +
          std::string(kNow) + "\n    WHERE resource = NEW.resource;\n" + know_store(in_trigger()));
}

std::string enter_to_read_trigger() {
  return trigger("leasehold_enter_to_read",
                 check_entry() + refuse_any() + add_row() +
                     "  UPDATE leasehold_fence SET lineage = NEW.lineage, read_token = NEW.token,\n"
                     "    read_request = NEW.request, accepted = accepted + 1,\n"
                     "    floor = nullif(" +
                     in_trigger().floor() +
                     ", 0)\n"
                     "    WHERE resource = NEW.resource\n"
                     "    AND NEW.token > max(coalesce(token, 0), coalesce(read_token, 0));\n"
                     "  UPDATE leasehold_fence SET entered_at = " +
                     std::string(kNow) + " WHERE resource = NEW.resource;\n" +
                     know_store(in_trigger()));
}

std::string claim_trigger() {
  return trigger("leasehold_claim",
                 check_resource() + check_request() +
                     refuse_mark("invalid: this resource is used with tokens, not with claims",
                                 "lineage IS NOT NULL") +
                     add_row() +
                     "  UPDATE leasehold_fence SET claim = NEW.request, is_reset = 0,\n"
                     "    accepted = accepted + 1 WHERE resource = NEW.resource;\n");
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

// Where there is no mark the time is that of the last refusal, so that the count is swept too.
std::string count_trigger() {
  return trigger("leasehold_count_refusal",
                 check_resource() + add_row() +
                     "  UPDATE leasehold_fence SET refused = refused + 1,\n"
                     "    entered_at = iif(lineage IS NULL, " +
                     std::string(kNow) + ", entered_at) WHERE resource = NEW.resource;\n");
}

constexpr std::string_view kColumns =
    "SELECT resource, lineage, token, request, refused, claim, read_token, read_request"
    " FROM main.leasehold_fence ";

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
      " read_token = NULL, read_request = NULL, floor = NULL, is_reset = 0, claim = NULL"
      " WHERE resource = ?1"));
  const std::string text = lineage.str();
  TRY(update.bind(1, resource.str()).bind(2, text).bind(3, at_least.value()).run());
  auto know = TRY(connection.prepare(know_store({"main.", "", "?1"})));
  const std::string store = lineage.store.hex();
  return know.bind(1, store).run();
}

Status adopt(Connection connection, const ResourceName& resource, const Lineage& lineage,
             TokenNumber at_least) {
  auto transaction = TRY(Transaction::begin(connection));
  const auto here = TRY(mark_here(connection, resource, lineage.store));
  const auto next = TRY(fence::adopted(resource, here.mark, lineage, at_least));
  if (next == here.mark) return {};
  TRY(write_adoption(connection, resource, lineage, at_least));
  return transaction.commit();
}

Status reset(Connection connection, const ResourceName& resource) {
  auto update = TRY(connection.prepare(
      "UPDATE main.leasehold_fence SET lineage = NULL, least = NULL, token = NULL, request = NULL,"
      " read_token = NULL, read_request = NULL, floor = NULL, is_reset = 1, claim = NULL"
      " WHERE resource = ?1"));
  TRY(update.bind(1, resource.str()).run());
  if (connection.changes() == 1) return {};
  return fail(fence::unknown_resource(resource));
}

}  // namespace

Status make_fence(Connection connection) {
  return connection.durably([&]() -> Status {
    auto installed =
        install_part(connection, kFence,
                     std::string(kTables) + keepers() + enter_trigger() + enter_to_read_trigger() +
                         claim_trigger() + confirm_trigger() + count_trigger());
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
    return connection.exec(kDropTables);
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

Result<MarkHere> mark_here(Connection connection, const ResourceName& resource,
                           const StoreId& store) {
  static const Asked asked{"main.", "?1", "?2"};
  static const std::string sql =
      "SELECT ?1, lineage, token, request, 0, NULL, read_token, read_request,"
      " iif(token IS NULL, least, NULL), " +
      asked.floor() + ", NOT " + asked.is_unknown() + ", entered_at > " + std::string(kNow) +
      " - 3600 FROM (SELECT 1) LEFT JOIN main.leasehold_fence ON resource = ?1";
  const std::string id = store.hex();
  const auto row = TRY(connection.run(sql, {&resource.str(), &id}));
  const auto marks = TRY(sql::marks_of(row));
  const FenceMark& found = marks.front();
  MarkHere here{
      .mark = {.lineage = found.lineage, .floor = row.number(9), .knows_store = row.flag(10)},
      .is_recent = row.flag(11)};
  if (const auto& by = found.mark) here.mark.holder = {by->number, by->request};
  if (const auto& by = found.reader) here.mark.reader = {by->number, by->request};
  if (const auto least = TokenNumber::of(row.number(8))) here.mark.least = *least;
  return here;
}

Status count_refusal(Connection connection, const ResourceName& resource) {
  if (connection.in_transaction()) {
    return fail(ErrorCode::invalid, "a refusal is counted after its transaction was rolled back");
  }
  auto count =
      TRY(connection.prepare("INSERT INTO main.leasehold_count_refusal(resource) VALUES(?1)"));
  return count.bind(1, resource.str()).run();
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

Snapshot snapshot_of(Connection connection) {
  const bool has_one = sqlite3_txn_state(connection.handle(), "main") == SQLITE_TXN_READ;
  return has_one ? Snapshot::of_user : Snapshot::none;
}

Error entry_error(Connection connection, Error error, Snapshot before) {
  const int code = sqlite3_extended_errcode(connection.handle());
  if (code == SQLITE_CONSTRAINT_TRIGGER) {
    const std::string_view words = error.store_words;
    if (words.starts_with(kFencedOut)) return Error(ErrorCode::fenced_out, {}, error.store_words);
    if (words.starts_with(kInvalid)) {
      return Error(ErrorCode::invalid, std::string(words.substr(kInvalid.size() + 2)),
                   error.store_words);
    }
  }
  if ((code & 0xff) == SQLITE_BUSY && before == Snapshot::of_mark) {
    return Error(ErrorCode::unavailable,
                 "this reader's token is the highest so far, and somebody else writes; roll back "
                 "and begin again: BEGIN IMMEDIATE waits for a writer, BEGIN does not",
                 error.store_words);
  }
  if ((code & 0xff) == SQLITE_BUSY && before == Snapshot::of_user) {
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
