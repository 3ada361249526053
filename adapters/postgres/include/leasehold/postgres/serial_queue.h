// A serial queue in a PostgreSQL database: see leasehold/serial_queue.h.
//
// The operation is taken, done and removed in one transaction, so that what the work writes to this
// database is done exactly once, wherever a worker dies. What it does elsewhere (mail, another
// service) may happen again: give the operation's id along as an idempotency key.
//
// Whatever is answered is committed durably, even if synchronous_commit is off: a crash neither
// loses a pushed operation nor gives its id to another.
//
// From any language: SELECT leasehold_serial.push('orders', 'order/1234', '{"ship":true}');
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "leasehold/postgres/transaction.h"
#include "leasehold/serial_queue.h"

struct pg_conn;  // libpq's connection, which libpq calls PGconn

namespace leasehold::postgres {

struct SerialHandleOptions : HandleOptions {
  // How long the work may leave the connection alone. Then the server ends the session and rolls
  // back, so that a frozen worker does not keep its entity. Zero: as the server is set.
  Millis idle_timeout{30'000};
};

struct SerialProblem {
  Operation operation;
  std::string last_error;
};

// A small value that may be copied; owns nothing of the connection, which is the caller's own, in
// blocking use, and must outlive its calls. As thread safe as the connection: one worker, one
// connection.
class SerialQueue {
 public:
  // Creates table leasehold_serial.operation and its functions. Doing it again changes nothing.
  // `invalid` inside a transaction, `unavailable` if it cannot be made or has another version.
  [[nodiscard]] static Status install(pg_conn* connection);

  // `invalid` for a wrong name (1 to 512 bytes of UTF-8 without control characters), `unavailable`
  // if it is not installed.
  [[nodiscard]] static Result<SerialQueue> open(pg_conn* connection, std::string_view queue);

  // Adds an operation; its id. In the transaction that is open on the connection, or in one of its
  // own. Until that transaction ends, another push to the same entity waits: the order of the
  // operations is that of the commits. A worker that is busy with the entity is not waited for.
  // `invalid`: a wrong entity or payload (text, at most 1 MiB). `unavailable`: a deadlock (two
  // transactions that push to the same two entities in opposite order), a timeout.
  [[nodiscard]] Result<std::int64_t> push(std::string_view entity, std::string_view payload) const;

  // Takes the oldest operation whose entity nobody is at work on, and runs
  // work(OpenTransaction&, const Operation&), which returns Status. Success: its writes are
  // committed and the operation is gone, together. An error rolls back and is counted, before
  // another worker can take the operation; an exception rolls back and is passed on. In READ
  // COMMITTED, whatever the session's default.
  //
  // A success that cannot be committed is counted as a failure, with the reason in `error`: a
  // deferred constraint is broken, or a statement of the work had failed. So is a work that ended
  // the transaction, but what it committed itself stays.
  //
  // Fails, with nothing done, with `invalid` (a transaction is open already) or `unavailable`, also
  // if the work lost the connection (a COPY that it leaves in pipeline mode does): then its failure
  // is not counted. `outcome_unknown` if the connection was lost during the commit of a success:
  // then it was done, or will be again.
  template <class Work>
  requires std::is_invocable_r_v<Status, Work&, OpenTransaction&, const Operation&>
  [[nodiscard]] Result<Handled> handle_one(Work&& work,
                                           const SerialHandleOptions& options = {}) const {
    auto taken = take(options);
    if (!taken) return fail(std::move(taken.error()));
    if (!*taken) return Handled{};
    OpenTransaction open((*taken)->transaction.handle());
    Status done = std::invoke(work, open, std::as_const((*taken)->operation));
    return finish(std::move(**taken), std::move(done), options);
  }

  // Operations that are not done yet, of all entities.
  [[nodiscard]] Result<std::int64_t> waiting() const;

  // For the operator. retry and skip: `invalid` if the operation is not set aside.
  [[nodiscard]] Result<std::vector<SerialProblem>> set_aside() const;
  [[nodiscard]] Status retry(std::int64_t id) const;
  [[nodiscard]] Status skip(std::int64_t id) const;  // never done; the entity goes on behind it

 private:
  struct Taken {
    OwnedTransaction transaction;
    Operation operation;
    std::string savepoint;  // before the work
  };

  SerialQueue(pg_conn* connection, QueueName queue)
      : connection_(connection), queue_(std::move(queue)) {}
  Result<std::optional<Taken>> take(const SerialHandleOptions& options) const;
  Result<Handled> finish(Taken taken, Status done, const HandleOptions& options) const;
  Status remove(const Operation& operation) const;
  // Whether the operation is set aside now.
  Result<bool> count_failure(const Operation& operation, const Error& error,
                             const HandleOptions& options) const;
  Result<bool> count_and_commit(Taken& taken, const Error& error,
                                const HandleOptions& options) const;
  Status resolve(std::int64_t id, const char* sql) const;

  pg_conn* connection_;
  QueueName queue_;
};

}  // namespace leasehold::postgres
