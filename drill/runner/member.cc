// A worker that is a member of a group, and works on the partitions that it owns.
#include "kinds_of_worker.h"
#include "kit/try.h"
#include "rota.h"

namespace leasehold::drill {
namespace {

// A membership that an earlier try may have left behind has its name until it has run out.
Result<Partitions> join(const WorkerPlan& plan, const Client& client, Rota& rota) {
  const LockName group = TRY(LockName::parse(plan.lock));
  const PartitionsOptions options{.count = plan.partitions,
                                  .member = plan.name,
                                  .ttl = plan.ttl,
                                  .look_every = plan.ttl / 2,
                                  .store_timeout = kStoreTimeout};
  for (;;) {
    auto member = Partitions::join(client, group, options, rota);
    if (member || member.error().code == ErrorCode::unsupported) return member;
    pause_after_failure();
  }
}

}  // namespace

Status run_member(const WorkerPlan& plan, Diary diary) {
  auto client = TRY(connect_worker(plan));
  auto history = TRY(HistoryWriter::open(plan.history, plan.name + "-work", current_boot()));
  Diary of_work(std::move(history));
  Desk desk(plan, of_work);
  Rota rota(std::move(diary));
  const auto member = TRY(join(plan, client, rota));
  while (std::cin) {
    const auto turn = TRY(rota.take_up(plan.ttl / 4));
    if (!turn) continue;
    Status worked =
        desk.open(turn->grant.resource()) ? desk.work(turn->grant, turn->partition) : Status();
    rota.put_down();
    TRY(worked);
  }
  return {};
}

}  // namespace leasehold::drill
