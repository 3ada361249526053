#include "connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "kit/text/number.h"
#include "kit/try.h"

namespace leasehold::postgres {
namespace {

constexpr int kTextFormat = 0;

// What others have put into the role's search_path is not found.
constexpr const char* kTrustNoNames = "SET LOCAL search_path = pg_catalog, pg_temp; ";

std::string field_of(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? "" : text;
}

// A server of another protocol may wait for the rest of what it takes for a request.
constexpr const char* kSilent =
    ": it accepted the connection, but no session began; it hangs, or is no PostgreSQL server";

bool awaits_session(ConnStatusType status) {
  return status == CONNECTION_SSL_STARTUP || status == CONNECTION_AWAITING_RESPONSE;
}

bool is_read_only(std::string_view words) {
  return words.find("read-only") != std::string_view::npos ||
         words.find("hot standby") != std::string_view::npos;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line(text);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

std::string words_of(const PGresult* result) {
  const std::string primary = field_of(result, PG_DIAG_MESSAGE_PRIMARY);
  if (primary.empty()) return one_line(PQresultErrorMessage(result));
  const std::string more = words_besides_primary(result);
  return one_line(field_of(result, PG_DIAG_SEVERITY) + ":  " + primary +
                  (more.empty() ? "" : " " + more));
}

std::string words_besides_primary(const PGresult* result) {
  std::string words;
  for (const auto& [label, code] :
       {std::pair("DETAIL", PG_DIAG_MESSAGE_DETAIL), std::pair("HINT", PG_DIAG_MESSAGE_HINT)}) {
    const std::string more = field_of(result, code);
    if (more.empty()) continue;
    words.append(words.empty() ? "" : " ").append(label).append(":  ").append(more);
  }
  return one_line(words);
}

std::int64_t Rows::number(int column, int row) const {
  std::string_view digits = text(column, row);
  return kit::take_number<std::int64_t>(digits).value_or(0);
}

std::int64_t Rows::changed() const {
  return kit::number_in<std::int64_t>(PQcmdTuples(result_.get())).value_or(0);
}

std::string Rows::without_dashes(std::string_view uuid) {
  std::string hex(uuid);
  std::erase(hex, '-');
  return hex;
}

// ---- connecting ----------------------------------------------------------------------------

Connection::Connection(Handle connection) : connection_(std::move(connection)) {
  PQsetnonblocking(connection_.get(), 1);
  PQsetNoticeReceiver(
      connection_.get(),
      [](void* self, const PGresult* notice) { static_cast<Connection*>(self)->noticed(notice); },
      this);
}

void Connection::noticed(const PGresult* notice) {
  const char* severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
  if (severity == nullptr || std::string_view(severity) != "WARNING") return;
  warning_ = words_of(notice);
}

Result<std::unique_ptr<Connection>> Connection::open_one(const Host& host,
                                                         waiting::CallWait& wait) {
  std::vector<const char*> keys;
  std::vector<const char*> values;
  for (const auto& [key, value] : host.keywords) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  Handle handle(PQconnectStartParams(keys.data(), values.data(), /*expand_dbname=*/0));
  if (!handle) return fail(ErrorCode::unavailable, "libpq is out of memory");
  // Not to the user's stderr.
  PQsetNoticeReceiver(
      handle.get(), [](void*, const PGresult*) {}, nullptr);
  PostgresPollingStatusType state = PGRES_POLLING_WRITING;
  while (state != PGRES_POLLING_OK) {
    if (state == PGRES_POLLING_FAILED || PQstatus(handle.get()) == CONNECTION_BAD) {
      return fail(ErrorCode::unavailable, "cannot connect", one_line(PQerrorMessage(handle.get())));
    }
    const int fd = PQsocket(handle.get());
    const bool ready =
        state == PGRES_POLLING_READING ? wait.until_readable(fd) : wait.until_writable(fd);
    if (!ready) {
      const bool silent =
          BootClock::now() >= wait.deadline() && awaits_session(PQstatus(handle.get()));
      return fail(wait.ended("connecting to " + host.address + (silent ? kSilent : ""),
                             /*sent=*/false));
    }
    state = PQconnectPoll(handle.get());
  }
  return std::unique_ptr<Connection>(new Connection(std::move(handle)));
}

Result<std::unique_ptr<Connection>> Connection::open(const std::vector<Host>& hosts,
                                                     const CallContext& context,
                                                     const waiting::Alarm& closing) {
  Error all(ErrorCode::unavailable, "");
  std::set<std::string> said;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    // A host that says nothing must leave time for the others.
    const auto left = context.deadline - BootClock::now();
    const CallContext share{BootClock::now() + left / static_cast<int>(hosts.size() - i),
                            context.stop};
    waiting::CallWait wait(share, closing);
    auto opened = open_one(hosts[i], wait);
    if (opened || opened.error().code == ErrorCode::cancelled) return opened;
    const std::string& why = opened.error().message;
    if (said.insert(why).second) all.message += (all.message.empty() ? "" : ", ") + why;
    if (!opened.error().store_words.empty()) {
      all.store_words += (all.store_words.empty() ? "" : "; ") + opened.error().store_words;
    }
  }
  if (is_read_only(all.store_words)) {
    all.message += hosts.size() == 1
                       ? ": the server is a read-only standby; name the primary, or all hosts"
                       : ": no host of the URL is a primary that can be written to";
  }
  return fail(std::move(all));
}

// ---- asking --------------------------------------------------------------------------------

// From the first byte on nobody knows what the server has got.
Error Connection::lost() {
  broken_ = true;
  return Error(ErrorCode::outcome_unknown, "the connection was lost before the answer came",
               one_line(PQerrorMessage(connection_.get())));
}

Status Connection::flush(waiting::CallWait& wait) {
  for (;;) {
    const int left = PQflush(connection_.get());
    if (left == 0) return {};
    if (left < 0) return fail(lost());
    if (!wait.until_writable(fd())) {
      return fail(wait.ended("sending to the server", /*sent=*/true));
    }
    // A server that waits for its own answers to be read does not read.
    if (PQconsumeInput(connection_.get()) == 0) return fail(lost());
  }
}

Status Connection::sent(int ok, waiting::CallWait& wait) {
  warning_.clear();
  owes_answer_ = true;
  if (ok == 0) return fail(lost());
  return flush(wait);
}

Status Connection::send(const std::string& sql, Parameters parameters, waiting::CallWait& wait) {
  return sent(PQsendQueryParams(connection_.get(), sql.c_str(), static_cast<int>(parameters.size()),
                                nullptr, parameters.begin(), nullptr, nullptr, kTextFormat),
              wait);
}

// In the same message, since behind a pooler a session has no settings that last; and for the
// transaction, since it is somebody else's afterwards.
Result<Rows> Connection::run(const std::string& sql, waiting::CallWait& wait) {
  const std::string trusting = std::string(kTrustNoNames) + sql;
  TRY(sent(PQsendQuery(connection_.get(), trusting.c_str()), wait));
  return receive(wait);
}

Result<Rows> Connection::run(const std::string& sql, Parameters parameters,
                             waiting::CallWait& wait) {
  TRY(send(sql, parameters, wait));
  return receive(wait);
}

Status Connection::send(const Statement& statement, Parameters parameters,
                        waiting::CallWait& wait) {
  const bool is_prepared = prepared_ && *statement.name != 0;
  if (!is_prepared) return send(statement.sql, parameters, wait);
  return sent(
      PQsendQueryPrepared(connection_.get(), statement.name, static_cast<int>(parameters.size()),
                          parameters.begin(), nullptr, nullptr, kTextFormat),
      wait);
}

Result<Rows> Connection::run(const Statement& statement, Parameters parameters,
                             waiting::CallWait& wait) {
  TRY(send(statement, parameters, wait));
  return receive(wait);
}

Result<Rows> Connection::prepare(const std::string& sql,
                                 const std::vector<const Statement*>& statements,
                                 waiting::CallWait& wait) {
  PGconn* connection = connection_.get();
  bool ok = PQenterPipelineMode(connection) == 1 &&
            PQsendQueryParams(connection, sql.c_str(), 0, nullptr, nullptr, nullptr, nullptr,
                              kTextFormat) == 1;
  for (const Statement* statement : statements) {
    ok = ok && PQsendPrepare(connection, statement->name, statement->sql.c_str(), 0, nullptr) == 1;
  }
  TRY(sent(ok && PQpipelineSync(connection) == 1 ? 1 : 0, wait));
  auto rows = next_result(wait);
  for (std::size_t i = 0; i < statements.size(); ++i) {
    auto prepared = next_result(wait);
    if (rows && !prepared) rows = fail(std::move(prepared.error()));
  }
  auto end = next_result(wait);
  if (rows && !end) rows = fail(std::move(end.error()));
  if (rows && PQexitPipelineMode(connection) == 0) return fail(lost());
  prepared_ = rows.has_value();
  owes_answer_ = false;
  broken_ = broken_ || !prepared_;
  return rows;
}

// ---- answers -------------------------------------------------------------------------------

Status Connection::await_input(waiting::CallWait& wait) {
  while (PQisBusy(connection_.get()) != 0) {
    if (!wait.until_readable(fd())) {
      return fail(wait.ended("waiting for the server's answer", /*sent=*/true));
    }
    if (PQconsumeInput(connection_.get()) == 0) return fail(lost());
  }
  return {};
}

bool Connection::has_answer() {
  if (broken_) return true;
  if (PQconsumeInput(connection_.get()) == 0) return true;
  return PQisBusy(connection_.get()) == 0;
}

// An ERROR has rolled the transaction back. Anything worse ended the session, perhaps after the
// commit.
Result<Rows> Connection::refused(PGresult* result) {
  const Rows owner(result);
  const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  const char* code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const bool rolled_back = severity != nullptr && std::string_view(severity) == "ERROR";
  if (!rolled_back) {
    Error error = lost();
    error.store_words = words_of(result);
    return fail(std::move(error));
  }
  const std::string state = code == nullptr ? "" : code;
  if (state == "25006") broken_ = true;  // it is not the primary any more: another host may be
  // insufficient_privilege
  const char* hint =
      state == "42501" ? "; docs/postgres.md has the GRANT lines that a role needs" : "";
  Error error(ErrorCode::unavailable, "the server refused (SQLSTATE " + state + ")" + hint,
              words_of(result));
  error.store_code = state;
  return fail(std::move(error));
}

Result<Rows> Connection::next_result(waiting::CallWait& wait) {
  for (;;) {
    TRY(await_input(wait));
    PGresult* result = PQgetResult(connection_.get());
    if (result == nullptr) {
      if (PQstatus(connection_.get()) == CONNECTION_BAD) return fail(lost());
      continue;
    }
    switch (PQresultStatus(result)) {
      case PGRES_FATAL_ERROR:
      case PGRES_BAD_RESPONSE:
      case PGRES_NONFATAL_ERROR:
        return refused(result);
      default:
        return Rows(result);
    }
  }
}

// The rows are sent before the transaction is committed: only the end of the answer says that it
// was.
Result<Rows> Connection::receive(waiting::CallWait& wait) {
  TRY(flush(wait));
  std::optional<Result<Rows>> answer;
  for (;;) {
    TRY(await_input(wait));
    PGresult* result = PQgetResult(connection_.get());
    if (result == nullptr) break;
    switch (PQresultStatus(result)) {
      case PGRES_TUPLES_OK:
      case PGRES_COMMAND_OK:
      case PGRES_EMPTY_QUERY:
        if (!answer || *answer) answer.emplace(Rows(result));
        break;
      default:
        if (!answer || *answer) {
          answer.emplace(refused(result));
        } else {
          PQclear(result);
        }
    }
  }
  owes_answer_ = false;
  if (!answer || (*answer && PQstatus(connection_.get()) == CONNECTION_BAD)) return fail(lost());
  // The one warning that can come: an administrator ended the wait for a synchronous standby, so
  // that the commit may be on this server alone. Asking again waits for the standby again.
  if (*answer && !warning_.empty()) {
    return fail(ErrorCode::outcome_unknown, "the server did it, but warned", warning_);
  }
  return std::move(*answer);
}

std::optional<std::string> Connection::next_notification() {
  const std::unique_ptr<PGnotify, decltype(&PQfreemem)> notified(PQnotifies(connection_.get()),
                                                                 &PQfreemem);
  if (!notified) return std::nullopt;
  return std::string(notified->extra);
}

bool Connection::healthy() {
  while (!broken_) {
    char byte = 0;
    const ssize_t got = recv(fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (got <= 0 || PQconsumeInput(connection_.get()) == 0) break;
    (void)PQisBusy(connection_.get());  // reads what has come: a notice, or the reason of the end
  }
  return false;
}

}  // namespace leasehold::postgres
