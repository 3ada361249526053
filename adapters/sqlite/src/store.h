// The lock store on a SQLite file: many threads and many processes of one machine.
#pragma once

#include <memory>
#include <type_traits>

#include "leasehold/registry.h"
#include "leasehold/url.h"
#include "lock_table.h"
#include "store_base/blocking_store.h"
#include "turnstile.h"

namespace leasehold::sqlite {

// Every call works on the thread it comes from; a thread of its own listens for wake-ups once this
// process has waited for a lock.
class SqliteStore final : public BlockingStore {
 public:
  // `unavailable` or `unsupported`, with the path and SQLite's own words.
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(LockTable::Options options,
                                                           const CallContext& context);
  ~SqliteStore() override { close(); }

  const StoreTraits& traits() const override { return traits_; }
  OnceRecords* once_records() override { return own_once_records(); }

 private:
  SqliteStore(std::unique_ptr<LockTable> table, StoreTraits traits, Random& random)
      : traits_(std::move(traits)), random_(random), table_(std::move(table)) {}

  Result<AcquireReply> do_acquire(const AcquireCall& call, const CallContext& context) override;
  Result<std::vector<RenewReply>> do_renew(const std::vector<RenewCall>& calls,
                                           const CallContext& context) override;
  Result<ReleaseReply> do_release(const ReleaseCall& call, const CallContext& context) override;
  Result<LockStatus> do_inspect(const InspectCall& call, const CallContext& context) override;
  Result<std::vector<LockStatus>> do_list(const CallContext& context) override;
  Result<ReleaseReply> do_force_release(const ForceReleaseCall& call,
                                        const CallContext& context) override;
  Result<StoreId> do_rotate_store_id(const CallContext& context) override;
  Result<std::optional<OnceRecord>> do_recall(const RecallCall& call,
                                              const CallContext& context) override;
  Status do_record(const RecordCall& call, const CallContext& context) override;
  Result<std::vector<std::string>> do_list_keys(const ListKeysCall& call,
                                                const CallContext& context) override;
  Result<bool> do_forget(const ForgetCall& call, const CallContext& context) override;
  void do_close() override;

  // What `work` makes of the table, which it has alone.
  template <class Work>
  std::invoke_result_t<Work, LockTable&> with_table(const CallContext& context, Work work);
  const std::string& wake_address();
  void give_sign();

  const StoreTraits traits_;
  Random& random_;
  Turnstile turnstile_;
  std::unique_ptr<LockTable> table_;         // inside the turnstile
  std::unique_ptr<WakeSocket> wake_socket_;  // inside the turnstile
};

// Of every SQLite store.
StoreTraits traits_of(const std::string& path);

// The default for the program: "sqlite:PATH", no options.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(const Url& url, const OpenOptions& opening);

}  // namespace leasehold::sqlite
