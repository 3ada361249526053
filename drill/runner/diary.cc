#include "diary.h"

#include "kit/try.h"
#include "ledger.h"

namespace leasehold::drill {

Grant grant_of(const Lease& lease, const std::optional<Token>& token, std::int64_t asked) {
  return {.lock = lease.lock().str(),
          .mode = lease.mode(),
          .slot = lease.slot(),
          .pass = {token, lease.request()},
          .asked = asked,
          .told = now(),
          .deadline = lease.deadline().time_since_epoch().count(),
          .ttl = lease.ttl()};
}

Record Diary::record(Kind kind, Operation operation, const Grant& grant) {
  Record it;
  it.time = now();
  it.kind = kind;
  it.operation = operation;
  it.set_mode(grant.mode, grant.slot);
  if (grant.pass.token) it.token = grant.pass.token->number.value();
  return it;
}

Status Diary::put(const Record& it, const Grant& grant) {
  HistoryWriter::Names names{.lock = grant.lock, .request = grant.pass.request};
  if (grant.pass.token) names.store = grant.pass.token->lineage.store;
  return history_.write(it, names);
}

Status Diary::granted(const Grant& grant) {
  Record asked = record(Kind::invoke, Operation::acquire, grant);
  asked.time = grant.asked;
  asked.token = 0;
  asked.slot = 0;
  TRY(put(asked, grant));
  Record told = record(Kind::ok, Operation::acquire, grant);
  told.time = grant.told;
  told.deadline = grant.deadline;
  return put(told, grant);
}

Status Diary::gives_back(const Grant& grant) {
  return put(record(Kind::invoke, Operation::release, grant), grant);
}

Status Diary::gave_back(const Grant& grant, const Result<ReleaseOutcome>& how) {
  const Kind kind = !how ? Kind::unknown : *how == ReleaseOutcome::released ? Kind::ok : Kind::fail;
  return put(record(kind, Operation::release, grant), grant);
}

}  // namespace leasehold::drill
