#include "leasehold/postgres/fence.h"

#include <string>

#include "fence/refusal.h"
#include "fence_functions.h"
#include "kit/try.h"

namespace leasehold::postgres {
namespace {

constexpr NamedStatement kEnter = {
    "leasehold_fence_enter_1",
    "SELECT leasehold_fence.enter($1, $2, $3, $4, $5), " LEASEHOLD_TRANSACTION_ID};

// Does what enter() does for a mark that has not changed, or nothing.
constexpr NamedStatement kEnterAgain = {
    "leasehold_fence_enter_again_1",
    "UPDATE leasehold_fence.entrance"
    " SET entered_xact = pg_catalog.pg_current_xact_id(), entered_at = pg_catalog.now()"
    " WHERE resource OPERATOR(pg_catalog.=) $1 AND token OPERATOR(pg_catalog.=) $2"
    " AND lineage OPERATOR(pg_catalog.=) $3 AND request OPERATOR(pg_catalog.=) $4"
    " AND (pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'on'"
    " OR pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'remote_apply')"
    " RETURNING NULL, " LEASEHOLD_TRANSACTION_ID};

constexpr const char* kEnterToRead = "SELECT leasehold_fence.enter_to_read($1, $2, $3, $4)";

// Entering locks a row, which a transaction cannot do that is read-only already.
constexpr NamedStatement kBeginToRead = {
    "leasehold_fence_enter_to_read_1",
    "SELECT leasehold_fence.enter_to_read($1, $2, $3, $4), " LEASEHOLD_TRANSACTION_ID
    ", pg_catalog.set_config('transaction_read_only', 'on', true)"};

// A token on its way into a resource.
class Entering {
 public:
  Entering(const ResourceName& resource, const Token& token, Entry entry)
      : resource_(resource.str()),
        number_(std::to_string(token.number.value())),
        lineage_(token.lineage.str()),
        request_(token.request.hex()),
        entry_(entry) {}

  // In a transaction that is open.
  Result<Rows> enter(const Session& session) const {
    return session.run(kEnter.sql, {resource_.c_str(), number_.c_str(), lineage_.c_str(),
                                    request_.c_str(), single()});
  }

  Result<Rows> enter_to_read(const Session& session) const {
    return session.run(kEnterToRead,
                       {resource_.c_str(), number_.c_str(), lineage_.c_str(), request_.c_str()});
  }

  // The mark is raised first and by itself, so that others can come in beside this transaction.
  Result<Rows> begin_to_read(const Session& session) const {
    const Parameters parameters = {resource_.c_str(), number_.c_str(), lineage_.c_str(),
                                   request_.c_str()};
    auto raised = session.run(kEnterToRead, parameters);
    if (!raised && is_conflict(raised.error())) {
      raised = session.run_read_committed(kEnterToRead, parameters);
    }
    if (!raised) return raised;
    return session.begin_with(kBeginToRead, parameters);
  }

  // With a transaction of its own, which a failure rolls back.
  Result<Rows> begin(const Session& session, PGconn* connection) const {
    const LastEntry here{resource_, request_};
    const bool again = entry_ == Entry::repeatable && entered_last(connection, here) &&
                       preparation_of(connection, kEnterAgain) != Preparation::impossible;
    if (again) return begin_again(session, connection);
    auto rows = begin_anew(session);
    if (rows) remember(connection, here);
    return rows;
  }

 private:
  const char* single() const { return entry_ == Entry::single ? "t" : "f"; }

  Result<Rows> begin_anew(const Session& session) const {
    return session.begin_with(
        kEnter, {resource_.c_str(), number_.c_str(), lineage_.c_str(), request_.c_str(), single()});
  }

  // Where it turns out to be no shorter, this connection does without.
  Result<Rows> begin_again(const Session& session, PGconn* connection) const {
    const auto give_up = [&] { remember(connection, kEnterAgain, Preparation::impossible); };
    auto rows = session.begin_with(
        kEnterAgain, {resource_.c_str(), number_.c_str(), lineage_.c_str(), request_.c_str()});
    if (!rows && (is_forbidden(rows.error()) || is_missing(rows.error()))) {
      give_up();
      return begin_anew(session);
    }
    if (!rows || rows->changed() == 1) return rows;
    rows = enter(session);  // the mark has changed, or the commit would not be durable
    if (rows) give_up();
    if (!rows) session.roll_back();
    return rows;
  }

  std::string resource_;
  std::string number_;
  std::string lineage_;
  std::string request_;
  Entry entry_;
};

// In the words of every fence.
Error explained(const ResourceName& resource, const Token& token, Error error) {
  if (!error.refusal) return error;
  Error refused = fence::refusal(resource, token, error.refusal->why,
                                 {error.refusal->lineage, error.refusal->mark});
  refused.store_code = std::move(error.store_code);
  return refused;
}

}  // namespace

Status install_fence(pg_conn* connection) {
  return make_fence(Session(connection));
}

Status remove_fence(pg_conn* connection) {
  return drop_fence(Session(connection));
}

Status guard_table(pg_conn* connection, std::string_view table, const ResourceName& resource) {
  return add_guard(Session(connection), table, resource);
}

Status unguard_table(pg_conn* connection, std::string_view table) {
  return remove_guard(Session(connection), table);
}

Result<std::vector<FenceMark>> fence_marks(pg_conn* connection) {
  return read_marks(Session(connection));
}

Status Driver::check_fence(pg_conn* connection) {
  return postgres::check_fence(Session(connection));
}

Status Driver::enter(pg_conn* connection, const ResourceName& resource, const Token& token,
                     Entry entry) {
  const Session session(connection);
  TRY(session.check_inside());
  auto rows = Entering(resource, token, entry).enter(session);
  if (!rows) return fail(explained(resource, token, std::move(rows.error())));
  return {};
}

Result<OwnedTransaction> Driver::begin_entered(pg_conn* connection, const ResourceName& resource,
                                               const Token& token, Entry entry) {
  const Session session(connection);
  TRY(session.check_outside());
  auto rows = Entering(resource, token, entry).begin(session, connection);
  if (!rows) rows.error() = explained(resource, token, std::move(rows.error()));
  return entered(connection, resource, std::move(rows));
}

Status Driver::enter_to_read(pg_conn* connection, const ResourceName& resource,
                             const Token& token) {
  const Session session(connection);
  TRY(session.check_inside());
  auto rows = Entering(resource, token, Entry::repeatable).enter_to_read(session);
  if (!rows) return fail(explained(resource, token, std::move(rows.error())));
  return {};
}

Result<OwnedTransaction> Driver::begin_reading(pg_conn* connection, const ResourceName& resource,
                                               const Token& token) {
  const Session session(connection);
  TRY(session.check_outside());
  auto rows = Entering(resource, token, Entry::repeatable).begin_to_read(session);
  if (!rows) rows.error() = explained(resource, token, std::move(rows.error()));
  return entered(connection, resource, std::move(rows));
}

Status Driver::count_refusal(pg_conn* connection, const ResourceName& resource) {
  return postgres::count_refusal(Session(connection), resource);
}

Result<std::optional<FenceMark>> Driver::mark(pg_conn* connection, const ResourceName& resource) {
  return read_mark(Session(connection), resource);
}

}  // namespace leasehold::postgres
