// The locks of a store's file: one transaction for the calls that come together.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "many_holders.h"
#include "record_table.h"
#include "store_base/blocking_store.h"
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

  // First looks for those who wait; then does the others that begin(), in this order and one
  // transaction, or two if numbers are needed, and answers them when it is committed. What has no
  // answer then was certainly not done, and the error says why: another call's may be the reason,
  // or there are no numbers at once. On its own it may be done.
  //
  // `wake_address` is stored with a place in the queue. The process behind it gives signs of life
  // there; without one, the waiter is to ask again every two seconds.
  [[nodiscard]] Status answer(std::span<const AnyAsked> batch, const std::string& wake_address);

  // The same for one, which waits for numbers.
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

  struct Doing;

  template <class Call, class Reply>
  Result<Reply> answer_alone(const Call& call, const std::string& wake_address);
  bool answer_by_look(AskedAcquire& asked);
  Status answer_by_transaction(std::vector<AnyAsked>& open, const std::string& wake_address);
  Status perform(AskedAcquire& asked, Doing& doing);
  Status perform(auto& asked, Doing& doing);
  void undo(AskedAcquire& asked);
  void undo(auto& asked) { asked.reply.reset(); }

  // Inside a transaction. The first gives nothing if a number is needed, and none is left.
  Result<std::optional<AcquireReply>> reply_to(const AcquireCall& call, Doing& doing);
  Result<std::vector<RenewReply>> reply_to(const std::vector<RenewCall>& calls, Doing&);
  Result<ReleaseReply> reply_to(const ReleaseCall& call, Doing& doing);
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
  Status count_to(std::int64_t token);
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
