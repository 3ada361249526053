// The smallest store there is: leases in memory, for the threads of one process.
#include <map>
#include <mutex>
#include <utility>

#include "adapters/toy_store/description.h"
#include "kit/try.h"
#include "leasehold/random.h"
#include "leasehold/toy_store/adapter.h"

namespace leasehold::toy_store {
namespace {

class ToyStore final : public Store {
 public:
  explicit ToyStore(std::string address) {
    traits_.address = std::move(address);
    traits_.why = "a store in memory forgets its counters when the process ends";
    traits_.instead = "Use sqlite:/path/locks.db";
  }

  const StoreTraits& traits() const override { return traits_; }
  void start(StoreEvents&) override {}  // it has nothing to tell unasked
  void close() override {}              // and nothing pending

  void acquire(AcquireCall call, CallContext, Completion<AcquireReply> done) override {
    done([&]() -> AcquireReply {
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
    }());
  }

  void renew(std::vector<RenewCall> calls, CallContext,
             Completion<std::vector<RenewReply>> done) override {
    std::vector<RenewReply> replies;
    for (const RenewCall& call : calls) {
      const std::scoped_lock guard(mutex_);
      Row& row = rows_[call.lock.str()];
      const bool mine = alive(row) && row.holder->request == call.request;
      if (mine) row.expires = BootClock::now() + call.ttl.length();
      replies.push_back(mine ? RenewReply::renewed : RenewReply::gone);
    }
    done(std::move(replies));
  }

  void release(ReleaseCall call, CallContext, Completion<ReleaseReply> done) override {
    bool mine = false;
    {
      const std::scoped_lock guard(mutex_);
      Row& row = rows_[call.lock.str()];
      mine = alive(row) && row.holder->request == call.request;
      if (mine) row.holder.reset();  // the counter stays: tokens must not start again
    }
    done(mine ? ReleaseReply::released : ReleaseReply::not_held);
  }

 private:
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
