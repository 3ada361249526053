// The locks of a store's file: one transaction per operation.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "many_holders.h"
#include "record_table.h"
#include "store_file.h"
#include "sweep.h"
#include "token_numbers.h"
#include "waiter_queue.h"

namespace leasehold::sqlite {

// Not thread safe; blocking. Many processes may have the same file open.
class LockTable {
 public:
  using Options = StoreFile::Options;
  using Patience = StoreFile::Patience;
  // `unavailable` or `unsupported` with the reason.
  [[nodiscard]] static Result<std::unique_ptr<LockTable>> open(Options options,
                                                               CallContext context);
  explicit LockTable(std::unique_ptr<StoreFile> file);
  LockTable(const LockTable&) = delete;

  // As StoreFile's.
  void be_patient(Patience patience) { file_->be_patient(std::move(patience)); }
  void hurry() { file_->hurry(); }

  // `wake_address` is stored with a place in the queue. The process behind it gives signs of life
  // there; without one, the waiter is to ask again every two seconds.
  [[nodiscard]] Result<AcquireReply> acquire(const AcquireCall& call,
                                             const std::string& wake_address);
  [[nodiscard]] Result<std::vector<RenewReply>> renew(const std::vector<RenewCall>& calls);
  [[nodiscard]] Result<ReleaseReply> release(const ReleaseCall& call);
  [[nodiscard]] Result<ReleaseReply> force_release(const LockName& lock, const RequestId& seen);
  [[nodiscard]] Status set_permits(const LockName& lock, std::optional<std::int64_t> permits);
  [[nodiscard]] Result<LockStatus> inspect(const LockName& lock);
  [[nodiscard]] Result<std::vector<LockStatus>> list();

  TokenNumbers& numbers() { return numbers_; }
  RecordTable& records() { return records_; }
  WakeFolder& wake_folder() { return queue_.wake_folder(); }

  // Whether a request that was asked for here has a place in a queue.
  bool waits() const { return !queue_.empty_here(); }

 private:
  struct Found;
  struct Way;

  Result<std::optional<AcquireReply>> try_acquire(const AcquireCall& call,
                                                  const std::string& wake_address);
  Result<Found> find(const LockName& lock);
  Status count_from(std::int64_t at, const LockName& lock, Found& found);
  Result<std::optional<Granted>> own_grant(const AcquireCall& call, const Found& found,
                                           std::int64_t at);
  Result<Way> way_of(const AcquireCall& call, const Found& found, std::int64_t at);
  Result<Way> way_beside(const AcquireCall& call, std::int64_t at);
  Result<Way> free_permit(const AcquireCall& call, const Found& found, std::int64_t at);
  Status check_use(const AcquireCall& call, Mode used, bool set = false);
  Status check_has_permits(const LockName& lock);
  Result<Granted> grant(const AcquireCall& call, const Found& found, const Way& way);
  Status write_holder(const AcquireCall& call, const Granted& granted, std::int64_t at);
  Result<std::vector<Waiter>> next_beside(const AcquireCall& call);
  Result<std::vector<Waiter>> next_that_fits(const LockName& lock);
  Result<bool> release_beside(const ReleaseCall& call);
  Result<bool> was_released(const ReleaseCall& call);
  Result<bool> run_on(Prepared& which, const LockName& lock, const RequestId& request);
  Result<LockStatus> read_status(Statement& row);
  Result<Statement*> sql(Prepared& statement) { return statement.in(file_->connection()); }

  const std::unique_ptr<StoreFile> file_;
  TokenNumbers numbers_;
  WaiterQueue queue_;
  RecordTable records_;
  ManyHolders many_;
  Sweep free_locks_;
  Prepared find_;
  Prepared count_;
  Prepared grant_;
  Prepared count_from_;
  Prepared renew_;
  Prepared release_;
  Prepared keep_;
  Prepared was_released_;
  Prepared force_;
  Prepared set_;
  Prepared unset_;
  Prepared lock_;
  Prepared locks_;
};

}  // namespace leasehold::sqlite
