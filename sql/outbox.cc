#include "sql/outbox.h"

#include <algorithm>
#include <chrono>

#include "kit/text/visible_text.h"
#include "kit/try.h"

namespace leasehold::sql {
namespace {

std::string put_in(std::string form, const std::string& what) {
  return form.replace(form.find('%'), 1, what);
}

OutboxMessage message_of(Rows& rows, int row) {
  return {.id = rows.number(0, row),
          .key = rows.take(1, row).value(),
          .topic = rows.take(2, row).value(),
          .payload = rows.take(3, row).value(),
          .idempotency_key = rows.take(4, row).value(),
          .attempts = rows.number(5, row)};
}

OutboxProblem problem_of(const Rows& rows, int row) {
  return {.message = {.id = rows.number(0, row),
                      .key = std::string(rows.text(1, row)),
                      .topic = std::string(rows.text(2, row)),
                      .payload = {},
                      .idempotency_key = std::string(rows.text(3, row)),
                      .attempts = rows.number(4, row)},
          .last_error = std::string(rows.text(5, row)),
          .behind = rows.number(6, row)};
}

// A century at most, either way: what a database can reckon with.
std::int64_t bounded(Millis age) {
  constexpr Millis kMost = std::chrono::hours(24 * 36525);
  return std::clamp(age, -kMost, kMost).count();
}

constexpr const char* kNotWaiting = "does not wait for delivery any more";

}  // namespace

SqlOutbox::SqlOutbox(OutboxForm form)
    : form_(std::move(form)),
      table_(form_.table),
      waiting_("SELECT o.id, o.key, o.topic, o.payload, o.idempotency_key, o.attempts FROM " +
               table_ + " o WHERE o.done_at IS NULL AND " + key_goes_on()) {}

std::string SqlOutbox::key_goes_on() const {
  return "NOT EXISTS (SELECT 1 FROM " + table_ + " s WHERE s.key = o.key AND " +
         put_in(form_.is_set_aside, "s") + " AND s.done_at IS NULL)";
}

// Both PostgreSQL's arrays and JSON escape so.
std::string SqlOutbox::list_of(const std::vector<std::string>& texts) const {
  std::string list(1, form_.list[0]);
  for (const std::string& text : texts) {
    if (list.size() > 1) list += ',';
    list += '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') list += '\\';
      list += c;
    }
    list += '"';
  }
  return list + form_.list[1];
}

Result<Rows> SqlOutbox::ask(const std::string& sql, const Parameters& parameters) {
  auto rows = run(sql, parameters, {});
  if (!rows) return fail(named(std::move(rows.error())));
  return rows;
}

template <class Work>
auto SqlOutbox::inside(const Token& token, Work work) -> decltype(work()) {
  decltype(work()) answer = fail(ErrorCode::internal, {});
  auto done = fenced(token, [&]() -> Status {
    answer = work();
    if (!answer) return fail(answer.error());
    return {};
  });
  if (!done) return fail(named(std::move(done.error())));
  return answer;
}

Result<Rows> SqlOutbox::change(std::int64_t id, const std::string& changes,
                               const std::string& condition, Parameters more,
                               const char* otherwise) {
  more.insert(more.begin(), id);
  auto rows = TRY(run("UPDATE " + table_ + " SET " + changes + " WHERE id = " + parameter(1) +
                          condition + " AND done_at IS NULL RETURNING set_aside",
                      more, {.writes = true}));
  if (rows.count() == 1) return rows;
  return fail(ErrorCode::invalid, "message " + std::to_string(id) + " " + otherwise);
}

Status SqlOutbox::enter(const Token& token) {
  if (auto ok = check(); !ok) return fail(named(std::move(ok.error())));
  return inside(token, [] { return Status(); });
}

// Subqueries, and no joins: as they are, the oldest are found by the index of those that wait, and
// a key that is left out costs one step.
Result<std::vector<OutboxMessage>> SqlOutbox::next(int limit,
                                                   const std::vector<std::string>& except,
                                                   std::int64_t after) {
  const std::string first_of_key =
      "(SELECT min(b.id) FROM " + table_ + " b WHERE b.key = o.key AND b.done_at IS NULL)";
  const std::string left_out = list_of(except);
  auto rows =
      TRY(ask(waiting_ + " AND o.id > " + parameter(1) + " AND " + first_of_key + " > " +
                  parameter(1) + " AND o.key NOT IN (" + put_in(form_.elements, parameter(2)) +
                  ") ORDER BY o.id LIMIT " + parameter(3),
              {after, &left_out, limit}));
  std::vector<OutboxMessage> messages;
  for (int row = 0; row < rows.count(); ++row) messages.push_back(message_of(rows, row));
  return messages;
}

Result<std::optional<OutboxMessage>> SqlOutbox::find(std::int64_t id) {
  auto rows = TRY(ask(waiting_ + " AND o.id = " + parameter(1), {id}));
  if (rows.count() == 0) return std::nullopt;
  return message_of(rows, 0);
}

Status SqlOutbox::delivered(const Token& token, std::int64_t id) {
  return inside(token, [&]() -> Status {
    TRY(change(id, "last_error = NULL, done_at = " + form_.now, "", {}, kNotWaiting));
    return {};
  });
}

Result<bool> SqlOutbox::failed(const Token& token, std::int64_t id, const std::string& why,
                               int attempts) {
  return inside(token, [&]() -> Result<bool> {
    const std::string text = kit::storable(why);
    const auto rows = TRY(change(id,
                                 "attempts = attempts + 1, last_error = " + parameter(2) +
                                     ", set_aside = attempts + 1 >= " + parameter(3),
                                 "", {&text, attempts}, kNotWaiting));
    return rows.flag(0);
  });
}

Result<std::int64_t> SqlOutbox::forget(const Token& token, Millis age) {
  return inside(token, [&]() -> Result<std::int64_t> {
    const auto gone = TRY(run("DELETE FROM " + table_ + " WHERE id IN (SELECT id FROM " + table_ +
                                  " WHERE done_at < " + put_in(form_.ago, parameter(1)) +
                                  " LIMIT 2000) RETURNING 1",
                              {bounded(age)}, {.writes = true}));
    return gone.count();
  });
}

Result<OutboxStatus> SqlOutbox::status() {
  if (auto ok = check(); !ok) return fail(named(std::move(ok.error())));
  const auto counts = TRY(ask(
      "SELECT count(*) FILTER (WHERE done_at IS NULL),"
      " count(*) FILTER (WHERE done_at IS NOT NULL AND NOT skipped),"
      " count(*) FILTER (WHERE skipped), coalesce(" +
      put_in(form_.since, "min(put_at) FILTER (WHERE done_at IS NULL AND " + key_goes_on() + ")") +
      ", 0) FROM " + table_ + " o"));
  const auto problems = TRY(
      ask("SELECT o.id, o.key, o.topic, o.idempotency_key, o.attempts, o.last_error,"
          " (SELECT count(*) FROM " +
          table_ + " b WHERE b.key = o.key AND b.done_at IS NULL AND b.id > o.id) FROM " + table_ +
          " o WHERE " + put_in(form_.is_set_aside, "o") + " AND o.done_at IS NULL ORDER BY o.id"));
  OutboxStatus status{.waiting = counts.number(0),
                      .delivered = counts.number(1),
                      .skipped = counts.number(2),
                      .lag = Millis(counts.number(3)),
                      .set_aside = {}};
  for (int row = 0; row < problems.count(); ++row) {
    status.set_aside.push_back(problem_of(problems, row));
  }
  return status;
}

Status SqlOutbox::retry(std::int64_t id) {
  return resolve(id, "attempts = 0, set_aside = false");
}

Status SqlOutbox::skip(std::int64_t id) {
  return resolve(id, "skipped = true, set_aside = false, done_at = " + form_.now);
}

Status SqlOutbox::resolve(std::int64_t id, const std::string& changes) {
  auto ok = check();
  if (ok) {
    ok = change(id, changes, " AND set_aside", {},
                "is not set aside; see `leasehold outbox show URL`")
             .map([](const Rows&) {});
  }
  if (!ok) return fail(named(std::move(ok.error())));
  return {};
}

}  // namespace leasehold::sql
