// A worker that stands for the lead, and works while it leads.
#include "kinds_of_worker.h"
#include "kit/try.h"
#include "leasehold/election.h"
#include "ledger.h"

namespace leasehold::drill {
namespace {

Status stand(const WorkerPlan& plan, Election& election, Desk& desk, Diary& diary) {
  const std::int64_t asked = now();
  auto leads = election.campaign({.ttl = plan.ttl, .wait = kLongestWait});
  if (!leads) {
    if (leads.error().code != ErrorCode::timeout) pause_after_failure();
    return {};
  }
  const Grant grant = grant_of(leads->lease(), leads->token(), asked);
  TRY(diary.granted(grant));
  if (desk.open(grant.resource())) TRY(desk.work(grant));
  TRY(diary.gives_back(grant));
  return diary.gave_back(grant, leads->resign(kStoreTimeout));
}

}  // namespace

Status run_candidate(const WorkerPlan& plan, Diary diary) {
  auto client = TRY(connect_worker(plan));
  auto lock = TRY(LockName::parse(plan.lock));
  Election election(std::move(client), std::move(lock));
  Desk desk(plan, diary);
  while (std::cin) {
    TRY(insist([&] { return desk.open(plan.lock); }));
    TRY(stand(plan, election, desk, diary));
  }
  return {};
}

}  // namespace leasehold::drill
