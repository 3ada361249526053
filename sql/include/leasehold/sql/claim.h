// The stand-in for a fence where the store has no order to give (Redlock): no token, only a request
// id. Write it into the resource, commit only while it is still there.
//
// The last to claim wins, be it late or not: a slow holder may push out the rightful one. No
// accepted update is lost all the same, because only one of the two can commit. With tokens to be
// had, use Fence: it keeps the rightful holder in.
#pragma once

#include <string_view>
#include <utility>

#include "leasehold/error.h"
#include "leasehold/id.h"
#include "leasehold/name.h"
#include "leasehold/sql/transaction.h"

namespace leasehold::sql {

// One claim on one resource. A small value that may be copied; it neither owns nor caches anything
// of the connection. As thread safe as the connection; calls block as those of Fence do. Needs
// install_fence(). A resource is used with tokens or with claims, never with both: the first use
// decides, the other is `invalid`. `Driver` is the database.
template <class Driver>
class Claim {
  using Handle = typename Driver::Handle;
  using Open = OpenTransactionOf<Driver>;

 public:
  // Writes `request` into the resource and commits. Whoever was there is taken over from, and can
  // commit no more. Doing it again with the same request takes the resource back.
  // Read the data after this call, never before; after taking it back, read everything again.
  // Fails with `invalid` for a wrong name, inside a transaction, or if the resource is used with
  // tokens; `unavailable` if the fence is not installed or cannot be written; `outcome_unknown` if
  // the disk failed or the connection was lost during the commit.
  [[nodiscard]] static Result<Claim> take(Handle* connection, std::string_view resource,
                                          const RequestId& request) {
    auto name = ResourceName::parse(resource);
    if (!name) return fail(std::move(name.error()));
    if (auto ok = Driver::claim(connection, *name, request); !ok) {
      return fail(std::move(ok.error()));
    }
    return Claim(connection, std::move(*name), request);
  }

  const ResourceName& resource() const { return resource_; }
  const RequestId& request() const { return request_; }

  // Checks, in the transaction that is open on the connection, that the claim is still there; locks
  // it until that transaction ends, so that it stays there.
  // Fails with `fenced_out` if somebody else has claimed since; with `invalid` if no transaction is
  // open; with `unavailable` as Fence::enter does. Then roll back.
  [[nodiscard]] Status confirm() const { return Driver::confirm(connection_, resource_, request_); }

  // Begins a transaction, confirms, runs work(OpenTransaction&) and commits: as Fence::transaction,
  // with the same failures. A refusal is counted. The claim stays, so that the holder may do this
  // again.
  template <TransactionWork<Open> Work>
  [[nodiscard]] AnswerOf<Work, Open> transaction(Work&& work) const {
    return run_and_commit<Open>(Driver::begin_confirmed(connection_, resource_, request_), work);
  }

 private:
  Claim(Handle* connection, ResourceName resource, const RequestId& request)
      : connection_(connection), resource_(std::move(resource)), request_(request) {}

  Handle* connection_;
  ResourceName resource_;
  RequestId request_;
};

}  // namespace leasehold::sql
