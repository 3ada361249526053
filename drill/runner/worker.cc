#include "worker.h"

#include "kinds_of_worker.h"
#include "kit/try.h"
#include "leasehold/drill/history_file.h"

namespace leasehold::drill {

Result<Client> connect_worker(const WorkerPlan& plan) {
  const auto owner = TRY(OwnerLabel::parse(plan.name));
  return insist([&] { return connect(plan.store, {.owner = owner}); });
}

Status run_worker(const WorkerPlan& plan) {
  auto history = TRY(HistoryWriter::open(plan.history, plan.name, current_boot()));
  Diary diary(std::move(history));
  switch (plan.use) {
    case Use::exclusive:
    case Use::shared:
    case Use::permits:
      return run_holder(plan, std::move(diary));
    case Use::election:
      return run_candidate(plan, std::move(diary));
    case Use::partitions:
      return run_member(plan, std::move(diary));
  }
  return {};
}

}  // namespace leasehold::drill
