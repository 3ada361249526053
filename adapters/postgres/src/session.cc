#include "session.h"

#include <openssl/evp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fence/refusal.h"
#include "kit/text/number.h"
#include "kit/try.h"
#include "leasehold/id.h"

namespace leasehold::postgres {
namespace {

constexpr std::string_view kFencedOut = "leasehold: fenced_out: ";
constexpr std::string_view kInvalid = "leasehold: invalid: ";

constexpr const char* kMissing =
    "the fence is not installed in this database, or not whole; install it with `leasehold fence "
    "install` or install_fence()";
constexpr const char* kForbidden =
    "this role may not do that: it lacks a GRANT, or does not own the schema; "
    "docs/fence-postgres.md, docs/outbox.md, docs/ways-not-to-lock.md and docs/serial-queue.md say "
    "what each part needs";
constexpr const char* kConflict =
    "another transaction came in between; roll back, begin again, and enter first";
constexpr const char* kTooLong =
    "another transaction stayed inside for longer than this connection waits";

constexpr NamedStatement kBegin = {"leasehold_begin_1", "BEGIN"};
constexpr NamedStatement kBeginReadCommitted = {"leasehold_begin_read_committed_1",
                                                "BEGIN ISOLATION LEVEL READ COMMITTED"};

std::string_view field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? std::string_view() : text;
}

std::string without(std::string_view prefix, std::string_view text) {
  return std::string(text.starts_with(prefix) ? text.substr(prefix.size()) : text);
}

std::string_view after(std::string_view label, std::string_view text) {
  const std::size_t at = text.find(label);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + label.size());
}

std::int64_t number_after(std::string_view label, std::string_view text) {
  std::string_view rest = after(label, text);
  return kit::take_number<std::int64_t>(rest).value_or(0);
}

// "offered=33 mark=34 reason=lower lineage=<the rest>". A claim that is refused has no numbers.
std::optional<Refusal> refusal_in(std::string_view detail) {
  if (detail.empty()) return std::nullopt;
  Refusal refusal{number_after("offered=", detail), number_after(" mark=", detail)};
  const std::string_view reason = after(" reason=", detail);
  const auto why = fence::reason_named(reason.substr(0, reason.find(' ')));
  if (!why) return refusal;
  refusal.why = *why;
  refusal.lineage = after(" lineage=", detail);
  return refusal;
}

Error refused(const PGresult* result) {
  Error error(ErrorCode::fenced_out, without(kFencedOut, field(result, PG_DIAG_MESSAGE_PRIMARY)));
  error.refusal = refusal_in(field(result, PG_DIAG_MESSAGE_DETAIL));
  return error;
}

bool is_one_of(std::string_view state, std::initializer_list<std::string_view> states) {
  for (const std::string_view one : states) {
    if (state == one) return true;
  }
  return false;
}

// Wrong values and broken constraints, a column that is not there or is of another type.
bool is_callers_fault(std::string_view state) {
  return state.starts_with("22") || state.starts_with("23") ||
         is_one_of(state, {"LH002", "LH003", "LH004", "42703", "42804"});
}

// invalid_schema_name, undefined_function, undefined_table
bool says_missing(std::string_view state) {
  return is_one_of(state, {"3F000", "42883", "42P01"});
}
// insufficient_privilege
constexpr std::string_view kForbiddenState = "42501";
// serialization_failure, deadlock_detected
bool says_conflict(std::string_view state) {
  return is_one_of(state, {"40001", "40P01"});
}
// lock_not_available, query_canceled
bool says_too_long(std::string_view state) {
  return is_one_of(state, {"55P03", "57014"});
}

std::string sentence_for(std::string_view state) {
  if (says_missing(state)) return kMissing;
  if (state == kForbiddenState) return kForbidden;
  if (says_conflict(state)) return kConflict;
  if (says_too_long(state)) return kTooLong;
  if (state == "25006") return "the server or this transaction is read-only";
  return "the server refused (SQLSTATE " + std::string(state) + ")";
}

// invalid_sql_statement_name, duplicate_prepared_statement: a pooler, or DISCARD, was between.
// feature_not_supported: a column that it reads has another type now.
bool is_lost_preparation(const PGresult* result) {
  return is_one_of(field(result, PG_DIAG_SQLSTATE), {"26000", "42P05", "0A000"});
}

// Behind a pooler another program's statement may have the same name, so that the name must tell
// the whole text.
std::string name_for(const std::string& sql) {
  constexpr std::size_t kEnough = 16;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  EVP_Digest(sql.data(), sql.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return "leasehold_" + leasehold::detail::to_hex(std::span(digest).first(kEnough));
}

bool is_copy(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  return status == PGRES_COPY_IN || status == PGRES_COPY_OUT;
}

// The server rolls back, and libpq takes notice. There is no other way out of COPY in pipeline
// mode.
void hang_up(PGconn* connection) {
  ::shutdown(PQsocket(connection), SHUT_RDWR);
  PQconsumeInput(connection);
}

}  // namespace

Error forbidden() {
  Error error(ErrorCode::unavailable, kForbidden);
  error.store_code = kForbiddenState;
  return error;
}
bool is_missing(const Error& error) {
  return says_missing(error.store_code);
}
bool is_forbidden(const Error& error) {
  return error.store_code == kForbiddenState;
}
bool is_conflict(const Error& error) {
  return says_conflict(error.store_code);
}
bool is_too_long(const Error& error) {
  return says_too_long(error.store_code);
}

std::string bounded(Millis span) {
  constexpr Millis century = std::chrono::hours(24 * 365 * 100);
  return std::to_string(std::clamp(span, -century, century).count());
}

std::string as_setting(Millis span) {
  constexpr Millis most{std::numeric_limits<std::int32_t>::max()};
  return std::to_string(std::min(span, most).count());
}

Status Session::check() const {
  if (connection_ == nullptr) return fail(ErrorCode::invalid, "there is no connection");
  if (PQpipelineStatus(connection_) != PQ_PIPELINE_OFF) {
    return fail(ErrorCode::invalid, "the connection is in pipeline mode");
  }
  if (PQstatus(connection_) != CONNECTION_OK) {
    return fail(ErrorCode::unavailable, "the connection is not open",
                one_line(PQerrorMessage(connection_)));
  }
  const char* encoding = PQparameterStatus(connection_, "client_encoding");
  if (encoding == nullptr || std::string_view(encoding) != "UTF8") {
    return fail(ErrorCode::invalid, std::string("the connection's client_encoding is ") +
                                        (encoding == nullptr ? "not known" : encoding) +
                                        "; Leasehold needs UTF8");
  }
  return {};
}

Status Session::check_inside() const {
  TRY(check());
  if (PQtransactionStatus(connection_) == PQTRANS_INTRANS) return {};
  return fail(ErrorCode::invalid,
              "no transaction is open, or it has failed: entering and writing must be one "
              "transaction");
}

Status Session::check_outside() const {
  TRY(check());
  if (PQtransactionStatus(connection_) == PQTRANS_IDLE) return {};
  return fail(ErrorCode::invalid,
              "the connection has a transaction open already, or is in the middle of a query; this "
              "call needs one of its own");
}

// A transaction that was open when the connection broke is rolled back: nobody sent its COMMIT.
Error Session::failure(const PGresult* result, bool inside) const {
  const std::string state(field(result, PG_DIAG_SQLSTATE));
  const std::string words = words_of(result);
  // Anything worse than an ERROR has ended the session.
  const bool goes_on = field(result, PG_DIAG_SEVERITY_NONLOCALIZED) == "ERROR";
  if (PQstatus(connection_) == CONNECTION_BAD || !goes_on) {
    return Error(inside ? ErrorCode::unavailable : ErrorCode::outcome_unknown,
                 "the connection was lost before the answer came",
                 words.empty() ? one_line(PQerrorMessage(connection_)) : words);
  }
  Error error = [&] {
    if (state == "LH001") return refused(result);
    if (!is_callers_fault(state)) {
      return Error(ErrorCode::unavailable, sentence_for(state), words);
    }
    return Error(ErrorCode::invalid, without(kInvalid, field(result, PG_DIAG_MESSAGE_PRIMARY)),
                 words_besides_primary(result));
  }();
  error.store_code = state;
  return error;
}

Result<Rows> Session::answer(PGresult* result, bool inside) const {
  Rows rows(result);
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return rows;
  return fail(failure(result, inside));
}

// A statement in an open transaction, be it a failed one, commits nothing, nor does one that cannot
// be sent.
bool Session::may_commit() const {
  const PGTransactionStatusType status = PQtransactionStatus(connection_);
  return PQstatus(connection_) == CONNECTION_OK && status != PQTRANS_INTRANS &&
         status != PQTRANS_INERROR;
}

Result<Rows> Session::run(const std::string& sql, Parameters parameters) const {
  return run(sql, std::vector<const char*>(parameters));
}

Result<Rows> Session::run(const std::string& sql,
                          const std::vector<const char*>& parameters) const {
  const bool begins = PQtransactionStatus(connection_) == PQTRANS_IDLE;
  const char* first = settings();
  if (begins && first != nullptr) return run_after(first, sql, parameters);
  const bool commits = may_commit();
  return answer(PQexecParams(connection_, sql.c_str(), static_cast<int>(parameters.size()), nullptr,
                             parameters.data(), nullptr, nullptr, /*resultFormat=*/0),
                !commits);
}

Result<Rows> Session::run_read_committed(const std::string& sql, Parameters parameters) const {
  auto rows = answer(PQexec(connection_, kBeginReadCommitted.sql), /*inside=*/true);
  if (!rows) return rows;
  if (const char* first = settings()) rows = run(first, Parameters());
  if (rows) rows = run(sql, parameters);
  if (!rows) {
    roll_back();
    return rows;
  }
  TRY(commit_open());
  return rows;
}

const char* Session::settings() const {
  return settings_ != nullptr ? settings_ : settings_of(connection_);
}

bool Session::send_text(const char* sql, const std::vector<const char*>& parameters,
                        std::vector<Sent>& sent) const {
  sent.push_back({nullptr, Sent::As::text});
  return PQsendQueryParams(connection_, sql, static_cast<int>(parameters.size()), nullptr,
                           parameters.data(), nullptr, nullptr, /*resultFormat=*/0) == 1;
}

// What is sent up to the end of the pipeline is one transaction.
Result<Rows> Session::run_after(const char* first, const std::string& sql,
                                const std::vector<const char*>& parameters) const {
  std::vector<Sent> sent;
  bool lost_preparation = false;
  const bool gone = PQenterPipelineMode(connection_) == 1 && send_text(first, {}, sent) &&
                    send_text(sql.c_str(), parameters, sent) && PQpipelineSync(connection_) == 1;
  return receive_pipeline(gone, sent, /*inside=*/false, lost_preparation);
}

// The server tells who answers, the connection who was announced.
bool Session::is_sessions_only_user() const {
  if (const auto known = has_own_session(connection_)) return *known;
  const auto rows = run("SELECT pg_catalog.pg_backend_pid()", {});
  if (!rows) return false;
  const bool own = rows->number(0) == PQbackendPID(connection_);
  remember_own_session(connection_, own);
  return own;
}

Preparation Session::preparation(const NamedStatement& statement) const {
  const Preparation known = preparation_of(connection_, statement);
  if (known != Preparation::not_yet || is_sessions_only_user()) return known;
  remember(connection_, statement, Preparation::impossible);
  return Preparation::impossible;
}

bool Session::is_prepared(const NamedStatement& statement) const {
  const Preparation known = preparation(statement);
  if (known != Preparation::not_yet) return known == Preparation::done;
  PGresult* result = PQprepare(connection_, statement.name, statement.sql, 0, nullptr);
  const bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
  if (done) remember(connection_, statement, Preparation::done);
  if (is_lost_preparation(result)) remember(connection_, statement, Preparation::impossible);
  PQclear(result);
  return done;
}

Result<Rows> Session::run_often(const std::string& sql,
                                const std::vector<const char*>& parameters) const {
  const bool ours = settings() != nullptr;
  if (ours || PQtransactionStatus(connection_) != PQTRANS_IDLE) return run(sql, parameters);
  const std::string name = name_for(sql);
  const NamedStatement statement{name.c_str(), sql.c_str()};
  if (!is_prepared(statement)) return run(sql, parameters);
  PGresult* result =
      PQexecPrepared(connection_, statement.name, static_cast<int>(parameters.size()),
                     parameters.data(), nullptr, nullptr, /*resultFormat=*/0);
  if (!is_lost_preparation(result)) return answer(result, /*inside=*/false);
  PQclear(result);
  remember(connection_, statement, Preparation::impossible);
  return run(sql, parameters);
}

// Adds what will be answered, in order.
bool Session::send_named(const NamedStatement& statement, Parameters parameters,
                         std::vector<Sent>& sent) const {
  const int count = static_cast<int>(parameters.size());
  const Preparation preparation = preparation_of(connection_, statement);
  if (preparation == Preparation::impossible) {
    sent.push_back({&statement, Sent::As::text});
    return PQsendQueryParams(connection_, statement.sql, count, nullptr, parameters.begin(),
                             nullptr, nullptr, 0) == 1;
  }
  if (preparation == Preparation::not_yet) {
    sent.push_back({&statement, Sent::As::preparation});
    if (PQsendPrepare(connection_, statement.name, statement.sql, 0, nullptr) != 1) return false;
  }
  sent.push_back({&statement, Sent::As::prepared});
  return PQsendQueryPrepared(connection_, statement.name, count, parameters.begin(), nullptr,
                             nullptr, 0) == 1;
}

// An answer for each that was sent, with a null behind it, and the end of the pipeline. After a
// failure the rest is told as aborted. The rows of the last.
Result<Rows> Session::receive_all(const std::vector<Sent>& sent, bool inside,
                                  bool& lost_preparation) const {
  Result<Rows> answered = fail(ErrorCode::internal, "there was no answer");
  auto next = sent.begin();
  for (bool at_end = false; !at_end && PQstatus(connection_) == CONNECTION_OK;) {
    PGresult* result = PQgetResult(connection_);
    if (result == nullptr) continue;
    at_end = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
    const bool counts = !at_end && PQresultStatus(result) != PGRES_PIPELINE_ABORTED;
    if (!counts || next == sent.end()) {
      PQclear(result);
      continue;
    }
    const bool lost = next->as != Sent::As::text && is_lost_preparation(result);
    const bool prepared = next->as == Sent::As::preparation;
    answered = answer(result, inside);
    if (lost) remember(connection_, *next->statement, Preparation::impossible);
    if (answered && prepared) remember(connection_, *next->statement, Preparation::done);
    lost_preparation = lost_preparation || lost;
    ++next;
  }
  return answered;
}

Result<Rows> Session::receive_pipeline(bool gone, const std::vector<Sent>& sent, bool inside,
                                       bool& lost_preparation) const {
  Result<Rows> answered =
      gone ? receive_all(sent, inside, lost_preparation) : fail(failure(nullptr, inside));
  if (answered && PQstatus(connection_) != CONNECTION_OK) {
    answered = fail(failure(nullptr, inside));
  }
  PQexitPipelineMode(connection_);
  return answered;
}

// On a connection of our own nobody has chosen another isolation.
const NamedStatement& Session::beginning() const {
  return settings() == nullptr ? kBegin : kBeginReadCommitted;
}

Result<Rows> Session::begin_with(const NamedStatement& statement, Parameters parameters) const {
  constexpr int kMostLosses = 2;   // one of each statement
  (void)preparation(beginning());  // asked now: in the pipeline it could not be
  (void)preparation(statement);
  bool lost_preparation = false;
  auto begun = try_to_begin(statement, parameters, lost_preparation);
  for (int losses = 0; lost_preparation && losses < kMostLosses; ++losses) {
    lost_preparation = false;
    begun = try_to_begin(statement, parameters, lost_preparation);
  }
  return begun;
}

Result<Rows> Session::try_to_begin(const NamedStatement& statement, Parameters parameters,
                                   bool& lost_preparation) const {
  std::vector<Sent> sent;
  const char* first = settings();
  const bool gone = PQenterPipelineMode(connection_) == 1 && send_named(beginning(), {}, sent) &&
                    (first == nullptr || send_text(first, {}, sent)) &&
                    send_named(statement, parameters, sent) && PQpipelineSync(connection_) == 1;
  auto answered = receive_pipeline(gone, sent, /*inside=*/true, lost_preparation);
  if (!answered) roll_back();
  return answered;
}

// PQexec reads and discards all that is to come, and ends a COPY.
void Session::read_what_was_sent() const {
  if (PQtransactionStatus(connection_) != PQTRANS_ACTIVE) return;
  PQclear(PQexec(connection_, ""));
}

Status Session::check_same(TransactionId transaction) const {
  if (!may_have_ended(connection_, transaction)) return {};
  if (PQtransactionStatus(connection_) != PQTRANS_INTRANS) return {};
  const auto open = TRY(run("SELECT pg_catalog.pg_current_xact_id_if_assigned()", {}));
  if (TransactionId{open.number(0)} == transaction) return {};
  return fail(ErrorCode::invalid,
              "the work ended its transaction and began another one; what it wrote in that was "
              "rolled back");
}

Status Session::check_after_work() const {
  if (PQpipelineStatus(connection_) != PQ_PIPELINE_OFF) {
    return fail(ErrorCode::invalid,
                "the work left the connection in pipeline mode; its transaction was rolled back");
  }
  read_what_was_sent();
  if (PQtransactionStatus(connection_) == PQTRANS_IDLE) {
    return fail(ErrorCode::invalid, "the transaction was over before its work returned");
  }
  if (PQtransactionStatus(connection_) == PQTRANS_INERROR) {
    return fail(ErrorCode::invalid,
                "a statement of the work had failed, so that its transaction was rolled back");
  }
  return {};
}

Status Session::commit(TransactionId transaction) const {
  Status ok = check_after_work();
  if (ok) ok = check_same(transaction);
  if (ok) return commit_open();
  roll_back();
  return ok;
}

// The work may have made the commit less durable since the transaction began. Both are one message,
// which costs no round trip.
Status Session::commit_open() const {
  static const std::string durably = std::string("SELECT ") + kDurably + "; COMMIT";
  const bool lost_before = PQstatus(connection_) != CONNECTION_OK;
  PGresult* result = PQexec(connection_, durably.c_str());
  const bool rolled_back = result != nullptr && std::string_view(PQcmdStatus(result)) == "ROLLBACK";
  auto done = answer(result, /*inside=*/lost_before);
  if (done && !rolled_back) return {};
  roll_back();
  if (!done) return fail(std::move(done.error()));
  return fail(ErrorCode::invalid, "the server rolled the transaction back");
}

// Reads what is still to come. A null stands behind each answer, and two where there is nothing.
bool Session::leave_pipeline() const {
  if (PQpipelineStatus(connection_) == PQ_PIPELINE_OFF) return true;
  if (PQpipelineSync(connection_) != 1) return false;
  for (int nulls = 0; nulls < 2 && PQstatus(connection_) == CONNECTION_OK;) {
    PGresult* result = PQgetResult(connection_);
    nulls = result == nullptr ? nulls + 1 : 0;
    if (is_copy(result)) hang_up(connection_);
    PQclear(result);
  }
  return PQexitPipelineMode(connection_) == 1;
}

void Session::roll_back() const {
  if (PQstatus(connection_) != CONNECTION_OK || !leave_pipeline()) return;
  if (PQtransactionStatus(connection_) == PQTRANS_IDLE) return;
  PQclear(PQexec(connection_, "ROLLBACK"));
}

}  // namespace leasehold::postgres
