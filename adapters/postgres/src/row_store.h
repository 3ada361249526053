// The lock store of lease rows: mode=rows.
#pragma once

#include <memory>

#include "common_store.h"
#include "listener.h"

namespace leasehold::postgres {

// A call alone goes on its caller's thread, with a connection to itself, in one round trip. Those
// that gather meanwhile share one connection and one round trip. A thread of its own listens for
// wake-ups once this client has waited for a lock.
class RowStore final : public CommonStore {
 public:
  // With the schema in place. `unavailable` or `unsupported`, with the server's own words.
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(Options options, Random& random,
                                                           const CallContext& context);
  ~RowStore() override { close(); }

 private:
  RowStore(Options options, Random& random);

  Status suits(const Server&) const override { return {}; }
  std::vector<const Statement*> statements() const override {
    return {&acquire_, &renew_, &release_, &together_, &doze_};
  }
  const StoreId& own(const StoreId& rows, const StoreId&) const override { return rows; }

  void answer(std::span<const AnyAsked> batch) override;
  Result<AcquireReply> do_acquire(const AcquireCall& call, const CallContext& context) override;
  Result<std::vector<RenewReply>> do_renew(const std::vector<RenewCall>& calls,
                                           const CallContext& context) override;
  Result<ReleaseReply> do_release(const ReleaseCall& call, const CallContext& context) override;
  Status do_set_permits(const SetPermitsCall& call, const CallContext& context) override;
  void do_close() override;

  // Those who wait on say so when they ask on their own.
  void waits_no_more(const AcquireCall& call) {
    if (call.queue) listener_.waits_no_more(call.request);
  }
  void waits_no_more(const ReleaseCall& call) { listener_.waits_no_more(call.request); }
  void waits_no_more(const std::vector<RenewCall>&) {}

  const Statement acquire_;
  const Statement renew_;
  const Statement release_;
  const Statement together_;
  const Statement doze_;
  Listener listener_;
};

}  // namespace leasehold::postgres
