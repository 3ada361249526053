#include "outbox.h"

#include <string>
#include <utility>

#include "admin_connection.h"
#include "array.h"
#include "fence_functions.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "leasehold/postgres/fence.h"
#include "leasehold/postgres/outbox.h"
#include "outbox_schema.h"
#include "part.h"

namespace leasehold::postgres {
namespace {

constexpr Part kOutbox = {"leasehold_outbox", kOutboxVersion, kOutboxSchema, "the outbox",
                          "with `leasehold outbox install` or install_outbox()"};

Status check_schema(Session session) {
  return check_part(session, kOutbox);
}

Status install(Session session) {
  TRY(install_fence_schema(session));
  return install_part(session, kOutbox);
}

// One row must have been meant.
Status exactly_one(const Result<Rows>& rows, std::int64_t id, const char* what) {
  if (!rows) return fail(rows.error());
  if (rows->count() == 1) return {};
  return fail(ErrorCode::invalid, "message " + std::to_string(id) + " " + what);
}

class PostgresOutbox final : public Outbox {
 public:
  explicit PostgresOutbox(AdminConnection connection) : connection_(std::move(connection)) {}

  Status install() override { return named(postgres::install(session())); }

  Status enter(const Token& token) override {
    TRY(named(check_schema(session())));
    return fenced(token, [](Session) { return Status(); });
  }

  Result<std::vector<OutboxMessage>> next(int limit, const std::vector<std::string>& except,
                                          std::int64_t after) override;

  Result<std::optional<OutboxMessage>> find(std::int64_t id) override;

  Status delivered(const Token& token, std::int64_t id) override {
    return fenced(token, [id](Session session) {
      const std::string number = std::to_string(id);
      return exactly_one(
          session.run(
              "UPDATE leasehold_outbox.message SET done_at = clock_timestamp(), last_error = NULL"
              " WHERE id = $1 AND done_at IS NULL RETURNING id",
              {number.c_str()}),
          id, "does not wait for delivery any more");
    });
  }

  Result<bool> failed(const Token& token, std::int64_t id, const std::string& why,
                      int attempts) override;
  Result<std::int64_t> forget(const Token& token, Millis age) override;
  Result<OutboxStatus> status() override;

  Status retry(std::int64_t id) override { return resolve(id, "attempts = 0, set_aside = false"); }
  Status skip(std::int64_t id) override {
    return resolve(id, "skipped = true, set_aside = false, done_at = clock_timestamp()");
  }

 private:
  Session session() const { return connection_.session(); }

  template <class T>
  Result<T> named(Result<T> result) const {
    return connection_.named(std::move(result));
  }

  // work(Session) in a transaction that has entered the outbox's fence.
  template <class Work>
  auto fenced(const Token& token, Work work) const -> decltype(work(Session(nullptr))) {
    auto fence = TRY(named(Fence::open(connection_.handle(), kOutboxResource)));
    return named(fence.transaction(
        token, [&](OpenTransaction& open) { return work(Session(open.handle())); }));
  }

  Status resolve(std::int64_t id, const std::string& change) const {
    TRY(named(check_schema(session())));
    const std::string number = std::to_string(id);
    return named(exactly_one(session().run("UPDATE leasehold_outbox.message SET " + change +
                                               " WHERE id = $1 AND set_aside AND done_at IS NULL"
                                               " RETURNING leasehold_fence.commit_durably()",
                                           {number.c_str()}),
                             id, "is not set aside; see `leasehold outbox show URL`"));
  }

  AdminConnection connection_;
};

// What waits and may be delivered, as message_of() reads it.
constexpr const char* kSelectWaiting =
    "SELECT o.id, o.key, o.topic, o.payload, o.idempotency_key, o.attempts"
    " FROM leasehold_outbox.message o WHERE o.done_at IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM leasehold_outbox.message s"
    "   WHERE s.key = o.key AND s.set_aside AND s.done_at IS NULL)";

OutboxMessage message_of(const Rows& rows, int row) {
  return {.id = rows.number(0, row),
          .key = std::string(rows.text(1, row)),
          .topic = std::string(rows.text(2, row)),
          .payload = std::string(rows.text(3, row)),
          .idempotency_key = std::string(rows.text(4, row)),
          .attempts = rows.number(5, row)};
}

// Subqueries, and no joins: as they are, the oldest are found by the index of those that wait, and
// a key that is left out costs one step.
Result<std::vector<OutboxMessage>> PostgresOutbox::next(int limit,
                                                        const std::vector<std::string>& except,
                                                        std::int64_t after) {
  const std::string most = std::to_string(limit);
  const std::string from = std::to_string(after);
  TextArray left_out;
  for (const std::string& key : except) left_out.add(key);
  const auto rows = TRY(named(session().run(
      std::string(kSelectWaiting) +
          " AND o.id > $3::bigint AND o.key NOT IN (SELECT pg_catalog.unnest($2::text[]))"
          " AND (SELECT min(b.id) FROM leasehold_outbox.message b"
          "   WHERE b.key = o.key AND b.done_at IS NULL) > $3::bigint"
          " ORDER BY o.id LIMIT $1",
      {most.c_str(), left_out.c_str(), from.c_str()})));
  std::vector<OutboxMessage> messages;
  for (int row = 0; row < rows.count(); ++row) messages.push_back(message_of(rows, row));
  return messages;
}

Result<std::optional<OutboxMessage>> PostgresOutbox::find(std::int64_t id) {
  const std::string number = std::to_string(id);
  const auto rows =
      TRY(named(session().run(std::string(kSelectWaiting) + " AND o.id = $1", {number.c_str()})));
  if (rows.count() == 0) return std::nullopt;
  return message_of(rows, 0);
}

Result<bool> PostgresOutbox::failed(const Token& token, std::int64_t id, const std::string& why,
                                    int attempts) {
  return fenced(token, [&](Session session) -> Result<bool> {
    const std::string number = std::to_string(id);
    const std::string most = std::to_string(attempts);
    const std::string text = kit::storable(why);
    const auto rows = session.run(
        "UPDATE leasehold_outbox.message SET attempts = attempts + 1, last_error = $2,"
        " set_aside = attempts + 1 >= $3 WHERE id = $1 AND done_at IS NULL RETURNING set_aside",
        {number.c_str(), text.c_str(), most.c_str()});
    TRY(exactly_one(rows, id, "does not wait for delivery any more"));
    return rows->flag(0);
  });
}

Result<std::int64_t> PostgresOutbox::forget(const Token& token, Millis age) {
  return fenced(token, [&](Session session) -> Result<std::int64_t> {
    const std::string millis = bounded(age);
    const auto rows = TRY(session.run(
        "WITH gone AS (DELETE FROM leasehold_outbox.message WHERE id IN"
        "  (SELECT id FROM leasehold_outbox.message"
        "   WHERE done_at < clock_timestamp() - $1::double precision * interval '1 millisecond' "
        "LIMIT 2000)"
        "  RETURNING 1)"
        " SELECT count(*) FROM gone",
        {millis.c_str()}));
    return rows.number(0);
  });
}

Result<OutboxStatus> PostgresOutbox::status() {
  TRY(named(check_schema(session())));
  const auto counts = TRY(named(session().run(
      "SELECT count(*) FILTER (WHERE done_at IS NULL),"
      " count(*) FILTER (WHERE done_at IS NOT NULL AND NOT skipped),"
      " count(*) FILTER (WHERE skipped),"
      " coalesce((extract(epoch FROM clock_timestamp() - min(put_at) FILTER (WHERE done_at IS NULL"
      "   AND NOT EXISTS (SELECT 1 FROM leasehold_outbox.message s WHERE s.key = o.key AND "
      "s.set_aside"
      "                   AND s.done_at IS NULL))) * 1000::numeric)::bigint, 0)"
      " FROM leasehold_outbox.message o",
      {})));
  const auto rows = TRY(named(session().run(
      "SELECT o.id, o.key, o.topic, o.idempotency_key, o.attempts, o.last_error,"
      " (SELECT count(*) FROM leasehold_outbox.message b WHERE b.key = o.key AND b.done_at IS NULL"
      "   AND b.id > o.id)"
      " FROM leasehold_outbox.message o WHERE o.set_aside AND o.done_at IS NULL ORDER BY o.id",
      {})));
  OutboxStatus status{.waiting = counts.number(0),
                      .delivered = counts.number(1),
                      .skipped = counts.number(2),
                      .lag = Millis(counts.number(3)),
                      .set_aside = {}};
  for (int row = 0; row < rows.count(); ++row) {
    status.set_aside.push_back({.message = {.id = rows.number(0, row),
                                            .key = std::string(rows.text(1, row)),
                                            .topic = std::string(rows.text(2, row)),
                                            .payload = {},
                                            .idempotency_key = std::string(rows.text(3, row)),
                                            .attempts = rows.number(4, row)},
                                .last_error = std::string(rows.text(5, row)),
                                .behind = rows.number(6, row)});
  }
  return status;
}

}  // namespace

Status install_outbox(pg_conn* connection) {
  return install(Session(connection));
}

Result<std::int64_t> outbox_put(pg_conn* connection, const OutboxEntry& entry) {
  const Session session(connection);
  TRY(check(entry));
  if (entry.payload.find('\0') != std::string::npos) {
    return fail(ErrorCode::invalid, "outbox payload has a zero byte, which no text can hold");
  }
  TRY(session.check_inside());
  const auto rows = session.run("SELECT leasehold_outbox.put($1, $2, $3, $4)",
                                {entry.key.c_str(), entry.topic.c_str(), entry.payload.c_str(),
                                 entry.idempotency_key ? entry.idempotency_key->c_str() : nullptr});
  if (!rows) {
    Error error = rows.error();
    if (is_missing(error)) error.message = not_installed(kOutbox);
    return fail(std::move(error));
  }
  return rows->number(0);
}

Result<std::unique_ptr<Outbox>> open_outbox(const Url& url) {
  auto connection = TRY(AdminConnection::open(url));
  return std::make_unique<PostgresOutbox>(std::move(connection));
}

}  // namespace leasehold::postgres
