// The smallest store there is: leases in memory, for the threads of one process.
#include <map>
#include <mutex>
#include <utility>

#include "adapters/toy_store/description.h"
#include "kit/try.h"
#include "leasehold/random.h"
#include "leasehold/toy_store/adapter.h"
#include "store_base/blocking_store.h"

namespace leasehold::toy_store {
namespace {

class ToyStore final : public BlockingStore {
 public:
  explicit ToyStore(std::string address) {
    traits_.address = std::move(address);
    traits_.why = "a store in memory forgets its counters when the process ends";
    traits_.instead = "Use sqlite:/path/locks.db";
  }
  ~ToyStore() override { close(); }

  const StoreTraits& traits() const override { return traits_; }

 private:
  Result<AcquireReply> do_acquire(const AcquireCall& call, const CallContext&) override {
    const std::scoped_lock guard(mutex_);
    Row& row = rows_[call.lock.str()];
    const bool fresh = !alive(row);
    if (!fresh && row.holder->request != call.request) return Busy{row.holder->owner.str()};
    if (fresh) {
      ++row.counter;
      row.holder = call;
      row.expires = BootClock::now() + call.ttl.length();
    }
    // The holder that asks again gets the same grant again, and its expiry stays where it was.
    return Granted{*TokenNumber::of(row.counter), id_, call.ttl.length(), fresh};
  }

  Result<std::vector<RenewReply>> do_renew(const std::vector<RenewCall>& calls,
                                           const CallContext&) override {
    const std::scoped_lock guard(mutex_);
    std::vector<RenewReply> replies;
    for (const RenewCall& call : calls) {
      Row& row = rows_[call.lock.str()];
      const bool mine = alive(row) && row.holder->request == call.request;
      if (mine) row.expires = BootClock::now() + call.ttl.length();
      replies.push_back(mine ? RenewReply::renewed : RenewReply::gone);
    }
    return replies;
  }

  Result<ReleaseReply> do_release(const ReleaseCall& call, const CallContext&) override {
    const std::scoped_lock guard(mutex_);
    Row& row = rows_[call.lock.str()];
    if (!alive(row) || row.holder->request != call.request) return ReleaseReply::not_held;
    row.holder.reset();  // the counter stays: tokens must not start again
    return ReleaseReply::released;
  }

  void do_close() override {}

  struct Row {
    std::int64_t counter = 0;
    std::optional<AcquireCall> holder;
    BootTime expires;
  };
  static bool alive(const Row& row) { return row.holder && BootClock::now() < row.expires; }

  StoreTraits traits_;
  const StoreId id_ = StoreId::random(system_random());
  std::mutex mutex_;
  std::map<std::string, Row> rows_;
};

Result<std::unique_ptr<Store>> open_store(const Url& url, const OpenOptions&) {
  TRY(technology().check_options(url, kStoreUse));
  return std::make_unique<ToyStore>(url.redacted());
}

}  // namespace

std::vector<Adapter> adapters() {
  return {{.scheme = "toy", .open_store = open_store}};
}

}  // namespace leasehold::toy_store
