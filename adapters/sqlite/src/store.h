// The lock store on a SQLite file: many threads and many processes of one machine.
#pragma once

#include <memory>

#include "leasehold/registry.h"
#include "leasehold/store.h"
#include "leasehold/url.h"
#include "lock_table.h"
#include "turnstile.h"

namespace leasehold::sqlite {

// Every call works on the thread it comes from; a thread of its own listens for wake-ups once this
// process has waited for a lock.
class SqliteStore final : public Store {
 public:
  // `unavailable` or `unsupported`, with the path and SQLite's own words.
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(LockTable::Options options,
                                                           const CallContext& context);
  ~SqliteStore() override { close(); }

  const StoreTraits& traits() const override { return traits_; }
  void start(StoreEvents& events) override { events_ = &events; }
  void close() override;
  void acquire(AcquireCall call, CallContext context, Completion<AcquireReply> done) override;
  void renew(std::vector<RenewCall> calls, CallContext context,
             Completion<std::vector<RenewReply>> done) override;
  void release(ReleaseCall call, CallContext context, Completion<ReleaseReply> done) override;
  void inspect(LockName lock, CallContext context, Completion<LockStatus> done) override;
  void list(CallContext context, Completion<std::vector<LockStatus>> done) override;
  void force_release(LockName lock, RequestId seen, CallContext context,
                     Completion<ReleaseReply> done) override;
  void rotate_lineage(CallContext context, Completion<StoreId> done) override;
  void recall(LockName lock, std::string key, CallContext context,
              Completion<std::optional<OnceRecord>> done) override;
  void record(LockName lock, RequestId request, std::string key, OnceRecord what,
              CallContext context, Completion<std::monostate> done) override;

 private:
  SqliteStore(std::unique_ptr<LockTable> table, StoreTraits traits, Random& random)
      : traits_(std::move(traits)), random_(random), table_(std::move(table)) {}

  // Runs `work` on the table, alone, and gives its result to `done` outside.
  template <class Reply, class Work>
  void with_table(CallContext context, const Completion<Reply>& done, Work work);
  const std::string& wake_address();
  void give_sign();

  const StoreTraits traits_;
  Random& random_;
  StoreEvents* events_ = nullptr;
  Turnstile turnstile_;
  std::unique_ptr<LockTable> table_;         // inside the turnstile
  std::unique_ptr<WakeSocket> wake_socket_;  // inside the turnstile
};

// Of every SQLite store.
StoreTraits traits_of(const std::string& path);

// The default for the program: "sqlite:PATH", no options.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(const Url& url, const OpenOptions& opening);

}  // namespace leasehold::sqlite
