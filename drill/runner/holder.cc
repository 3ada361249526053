// A worker that takes a lock, in whichever mode.
#include <variant>

#include "kinds_of_worker.h"
#include "kit/try.h"
#include "ledger.h"

namespace leasehold::drill {
namespace {

// A lease with a token where the store has them.
class Holding {
 public:
  explicit Holding(FencedLease lease) : lease_(std::move(lease)) {}
  explicit Holding(Lease lease) : lease_(std::move(lease)) {}

  Lease& lease() {
    return std::visit([](auto& it) -> Lease& { return it; }, lease_);
  }
  std::optional<Token> token() const {
    const auto* fenced = std::get_if<FencedLease>(&lease_);
    return fenced ? std::optional(fenced->token()) : std::nullopt;
  }

 private:
  std::variant<FencedLease, Lease> lease_;
};

class Holder {
 public:
  Holder(const WorkerPlan& plan, Client client, Diary diary)
      : plan_(plan), client_(std::move(client)), diary_(std::move(diary)), desk_(plan, diary_) {}

  Status run();

 private:
  Result<Holding> take();
  Status turn();

  const WorkerPlan& plan_;
  Client client_;
  Diary diary_;
  Desk desk_;
};

Result<Holding> Holder::take() {
  const AcquireOptions options{
      .ttl = plan_.ttl, .wait = kLongestWait, .store_timeout = kStoreTimeout, .mode = plan_.mode};
  if (client_.store().guarantee == Guarantee::correctness) {
    auto lease = TRY(client_.acquire_fenced(plan_.lock, options));
    return Holding(std::move(lease));
  }
  auto lease = TRY(client_.acquire(plan_.lock, options));
  return Holding(std::move(lease));
}

Status Holder::turn() {
  const std::int64_t asked = now();
  auto holding = take();
  if (!holding) {
    if (holding.error().code != ErrorCode::timeout) pause_after_failure();
    return {};
  }
  const Grant grant = grant_of(holding->lease(), holding->token(), asked);
  TRY(diary_.granted(grant));
  if (desk_.open(grant.resource())) {
    if (grant.mode == Mode::shared()) {
      desk_.look(grant);
    } else {
      TRY(desk_.work(grant, grant.slot ? Piece(grant.slot->number) : std::nullopt));
    }
  }
  TRY(diary_.gives_back(grant));
  return diary_.gave_back(grant, holding->lease().release(kStoreTimeout));
}

Status Holder::run() {
  while (std::cin) {
    // Which resource that of a permit is, is known when it is granted.
    if (!plan_.mode.is_permit()) TRY(insist([this] { return desk_.open(plan_.lock); }));
    TRY(turn());
  }
  return {};
}

}  // namespace

Status run_holder(const WorkerPlan& plan, Diary diary) {
  auto client = TRY(connect_worker(plan));
  return Holder(plan, std::move(client), std::move(diary)).run();
}

}  // namespace leasehold::drill
