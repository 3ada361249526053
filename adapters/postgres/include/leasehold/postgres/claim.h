// The stand-in for a fence where the store has no order to give (Redlock): no token, only a request
// id. Write it into the resource, commit only while it is still there.
//
// The last to claim wins, be it late or not: a slow holder may push out the rightful one. No
// accepted update is lost all the same, because only one of the two can commit. With tokens to be
// had, use Fence: it keeps the rightful holder in.
//
//   SELECT leasehold_fence.claim('invoice/1234', '<request>');      -- a transaction of its own
//   ... reads, and work that may take long ...
//   BEGIN;
//   SELECT leasehold_fence.confirm('invoice/1234', '<request>');    -- fails if taken over
//   ... writes ...
//   COMMIT;
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "leasehold/error.h"
#include "leasehold/id.h"
#include "leasehold/name.h"
#include "leasehold/postgres/transaction.h"

struct pg_conn;  // libpq's connection, which libpq calls PGconn

namespace leasehold::postgres {

// One claim on one resource. A small value that may be copied; it neither owns nor caches anything
// of the connection. As thread safe as the connection; calls block as those of Fence do. Needs
// install_fence(). A resource is used with tokens or with claims, never with both: the first use
// decides, the other is `invalid`.
class Claim {
 public:
  // Writes `request` into the resource and commits. Whoever was there is taken over from, and can
  // commit no more. Doing it again with the same request takes the resource back.
  // Read the data after this call, never before; after taking it back, read everything again.
  // Fails with `invalid` for a wrong name, inside a transaction, or if the resource is used with
  // tokens; `unavailable` if the fence is not installed or cannot be written; `outcome_unknown` if
  // the connection was lost before the answer.
  [[nodiscard]] static Result<Claim> take(pg_conn* connection, std::string_view resource,
                                          const RequestId& request);

  const ResourceName& resource() const { return resource_; }
  const RequestId& request() const { return request_; }

  // Checks, in the transaction that is open on the connection, that the claim is still there; locks
  // it until that transaction ends, so that it stays there.
  // Fails with `fenced_out` if somebody else has claimed since; with `invalid` if no transaction is
  // open; with `unavailable` as Fence::enter does. Then roll back.
  [[nodiscard]] Status confirm() const;

  // BEGIN, confirm, work(OpenTransaction&), COMMIT: as Fence::transaction, with the same failures.
  // A refusal is counted. The claim stays, so that the holder may do this again.
  template <TransactionWork Work>
  [[nodiscard]] auto transaction(Work&& work) const
      -> std::remove_cvref_t<std::invoke_result_t<Work&, OpenTransaction&>> {
    auto begun = begin();
    if (!begun) return fail(std::move(begun.error()));
    return run_and_commit(std::move(*begun), work);
  }

 private:
  Claim(pg_conn* connection, ResourceName resource, const RequestId& request)
      : connection_(connection), resource_(std::move(resource)), request_(request) {}
  Result<OwnedTransaction> begin() const;

  pg_conn* connection_;
  ResourceName resource_;
  RequestId request_;
};

}  // namespace leasehold::postgres
