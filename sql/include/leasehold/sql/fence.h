// The fence of a SQL database of your own: refuses the stale holder inside the transaction that
// writes your data. leasehold::sqlite::Fence and leasehold::postgres::Fence are this class.
//
// Rules: a lower token is refused; an equal token passes only with the same request id (and not
// with Entry::single); a token of another lineage is refused and never compared; the first token to
// enter decides the lineage. Marks are kept until an operator sweeps old ones
// (FenceAdmin::sweep); a floor per store then refuses whoever was below.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "leasehold/enter_options.h"
#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/name.h"
#include "leasehold/sql/transaction.h"
#include "leasehold/token.h"

namespace leasehold::sql {

// One resource behind the fence. A small value that may be copied; it neither owns nor caches
// anything of the connection, which must outlive its calls. As thread safe as the connection: not
// to be used by two threads at once. Every call may block as long as the connection lets it: see
// the fence.h of the database. `Driver` is the database.
template <class Driver>
class Fence {
  using Handle = typename Driver::Handle;
  using Open = OpenTransactionOf<Driver>;

 public:
  // `connection` is your own. Opening reads, so do it before you begin the transaction in which you
  // enter. Fails with `invalid` for a wrong name (1 to 512 bytes of UTF-8 without control
  // characters) or a connection that cannot be used; `unavailable` if the fence is not installed
  // there or has another version.
  [[nodiscard]] static Result<Fence> open(Handle* connection, std::string_view resource) {
    auto name = ResourceName::parse(resource);
    if (!name) return fail(std::move(name.error()));
    return open(connection, std::move(*name));
  }
  [[nodiscard]] static Result<Fence> open(Handle* connection, ResourceName resource) {
    if (auto ok = Driver::check_fence(connection); !ok) return fail(std::move(ok.error()));
    return Fence(connection, std::move(resource));
  }

  const ResourceName& resource() const { return resource_; }

  // Enters the fence in the transaction that is open on the connection. Make it the first statement
  // there: what was read before entering may be stale. The mark moves when that transaction
  // commits. After a rollback to a savepoint from before the entry it has not entered.
  //
  // Fails with
  // - `fenced_out`: refused; error.refusal has both numbers. Roll back, then count_refusal().
  // - `invalid`: no transaction is open, the resource is used with claims, or it guards a table and
  //   the connection cannot be used for that.
  // - `unavailable`: somebody else is inside or writing for too long, a deadlock, or somebody has
  //   entered or written since this transaction began or read. Roll back and begin again.
  // After a failure nothing has been changed by this call. Roll back: a commit could let through
  // whatever else the transaction wrote.
  [[nodiscard]] Status enter(const Token& token, Entry entry = Entry::repeatable) const {
    return Driver::enter(connection_, resource_, token, entry);
  }

  // Begins a transaction, enters (in one round trip where there is a server), runs
  // work(OpenTransaction&) and commits. The work returns Status or Result<T>, and so does this
  // call. An error or an exception of the work rolls everything back, the mark too, and is passed
  // on. The isolation level is the session's default.
  //
  // Fails besides with
  // - `fenced_out`: the work was not run. The refusal is counted, durably; if that fails,
  //   error.store_words says so.
  // - `invalid`: a transaction is open already, the resource is used with claims, or the work
  //   ended the transaction, ignored a failed statement or broke a deferred constraint.
  // - `unavailable`: as enter(), or the commit was not done. Safe to retry.
  // - `outcome_unknown`: the disk failed or the connection was lost during the commit.
  template <TransactionWork<Open> Work>
  [[nodiscard]] AnswerOf<Work, Open> transaction(const Token& token, Work&& work,
                                                 Entry entry = Entry::repeatable) const {
    return run_and_commit<Open>(Driver::begin_entered(connection_, resource_, token, entry), work);
  }

  // Enters to read, in the transaction that is open on the connection: beside others who read, with
  // higher or lower tokens. Refuses a token below that of a writer, and shuts out every later write
  // below this token. Make it the first statement there. Call it first in a transaction of its own
  // and commit: else readers with higher tokens wait until this transaction ends. Fails as enter().
  [[nodiscard]] Status enter_to_read(const Token& token) const {
    return Driver::enter_to_read(connection_, resource_, token);
  }

  // As transaction(), for work that only reads: enters to read in a transaction of its own, so that
  // the mark is raised whatever becomes of the work, then begins another one, enters it, runs
  // work(OpenTransaction&) and ends it. So any number of readers work at the same time. Fails as
  // transaction(). Work that writes changes nothing: in PostgreSQL its statement fails, in SQLite
  // it is `invalid` at the end.
  template <TransactionWork<Open> Work>
  [[nodiscard]] AnswerOf<Work, Open> read(const Token& token, Work&& work) const {
    return run_and_commit<Open>(Driver::begin_reading(connection_, resource_, token), work);
  }

  // Only where the database needs it (SQLite): ends the right to write to guarded tables in the
  // transaction that is open on the connection, for all resources. The last step before its commit,
  // which is refused otherwise. Does nothing if no table is guarded. transaction() does it by
  // itself.
  [[nodiscard]] Status leave() const requires requires(Handle* connection) {
    Driver::leave(connection);
  }
  { return Driver::leave(connection_); }

  // Adds one to this resource's refusals, the stale-holder alarm. transaction() does it by itself;
  // after a refused enter() call it once your transaction is rolled back.
  // Fails with `invalid` inside a transaction, `unavailable` if it cannot be written.
  [[nodiscard]] Status count_refusal() const {
    return Driver::count_refusal(connection_, resource_);
  }

  // What is remembered of this resource; nothing if it was never entered.
  [[nodiscard]] Result<std::optional<FenceMark>> mark() const {
    return Driver::mark(connection_, resource_);
  }

 private:
  Fence(Handle* connection, ResourceName resource)
      : connection_(connection), resource_(std::move(resource)) {}

  Handle* connection_;
  ResourceName resource_;
};

}  // namespace leasehold::sql
