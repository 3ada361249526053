// The lock store's file: its schema, and one transaction per operation.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "database.h"
#include "leasehold/random.h"
#include "leasehold/store.h"
#include "machine.h"
#include "own_waiters.h"
#include "turnstile.h"
#include "wake_socket.h"

namespace leasehold::sqlite {

// What a lock store's file says of itself: application_id and user_version.
inline constexpr std::int64_t kApplicationId = 0x4c656173;  // "Leas"
inline constexpr int kFormat = 2;

bool is_lock_store(Connection connection);

// Not thread safe; blocking. Many processes may have the same file open.
//
// Each lock counts its own tokens; three numbers of the store bound all of them. Why a token never
// repeats: numbers are reserved first, up to store.reserved. When that is known to be on disk,
// store.ceiling says so, and no lock counts beyond it. A process that finds the ceiling below what
// is reserved cannot know whether the one that reserved it died before it was on disk, and makes it
// durable itself. All other commits are left to the kernel, which keeps them when a process dies.
// Only a crash of the machine can lose them, and then the next boot begins above what was reserved:
// every token of a boot is above store.floor.
class LockTable {
 public:
  struct Options {
    std::string path;
    bool create = true;  // on first use
    MachineIdentity machine;
    const Clock* clock = nullptr;
    Random* random = nullptr;
    const char* vfs = nullptr;
    std::int64_t token_block = 1000;  // numbers reserved at once
    int checkpoint_frames = 1000;
    int frames_at_close = 64;  // a longer log would make the next process start slowly
  };
  // `unavailable` or `unsupported` with the reason.
  [[nodiscard]] static Result<std::unique_ptr<LockTable>> open(Options options,
                                                               CallContext context);
  ~LockTable();
  LockTable(const LockTable&) = delete;

  struct Patience {
    CallContext context;
    // While numbers are not to be had: lets other threads do what they can, for so long at least.
    // False: the end.
    std::function<bool(Pause)> step_aside = {};
  };
  // Applies to every operation until the next call: how long to wait for another process.
  void be_patient(Patience patience) { patience_ = std::move(patience); }

  // Ends the waiting of an operation that runs on another thread, and of all later ones.
  void hurry() { hurried_ = true; }

  // `wake_address` is stored with a place in the queue. The process behind it gives signs of life
  // there; without one, the waiter is to ask again every two seconds.
  [[nodiscard]] Result<AcquireReply> acquire(const AcquireCall& call,
                                             const std::string& wake_address);
  [[nodiscard]] Result<std::vector<RenewReply>> renew(const std::vector<RenewCall>& calls);
  [[nodiscard]] Result<ReleaseReply> release(const ReleaseCall& call);
  [[nodiscard]] Result<ReleaseReply> force_release(const LockName& lock, const RequestId& seen);
  [[nodiscard]] Result<LockStatus> inspect(const LockName& lock);
  [[nodiscard]] Result<std::vector<LockStatus>> list();
  [[nodiscard]] Result<StoreId> rotate_store_id();
  [[nodiscard]] Result<std::optional<OnceRecord>> recall(const LockName& lock,
                                                         const std::string& key);
  [[nodiscard]] Status record(const LockName& lock, const RequestId& request,
                              const std::string& key, const OnceRecord& what);
  [[nodiscard]] Result<std::vector<std::string>> list_keys(const LockName& lock);
  [[nodiscard]] Result<bool> forget(const LockName& lock, const std::string& key);

  WakeFolder& wake_folder() { return wake_folder_; }

  // Whether a request that was asked for here has a place in a queue.
  bool waits() const { return !own_waiters_.empty(); }

 private:
  explicit LockTable(Options options, Database database);

  enum Sql : std::size_t {
    kBegin,
    kCommit,
    kFind,
    kGrant,
    kCountFrom,
    kWaitersOf,
    kEnqueue,
    kLook,
    kCall,
    kAddresses,
    kMiss,
    kDropWaiter,
    kDropWaitersAt,
    kRenew,
    kRelease,
    kKeep,
    kWasReleased,
    kForce,
    kLock,
    kLocks,
    kRecall,
    kRecord,
    kIsOnDisk,
    kHolds,
    kSqlCount
  };
  struct Found;
  struct Seen {
    Queued reply;
    bool signs_elsewhere;  // its process gives the signs of life, the row need not be written
  };
  struct Waiter {
    RequestId request;
    std::string owner;
    std::string wake;
    std::int64_t alive_until;
  };
  enum class Life {
    coming,  // has been called, and has still time
    idle,    // was never called, as far as is known its process lives
    silent,  // did not come when it was called, or its process gave no sign of life
    dead,
  };
  static bool may_come(Life life) { return life == Life::coming || life == Life::idle; }

  Status prepare_file();
  Status check_empty() const;
  Status use_log();
  Status create_schema();
  Status enter_boot();
  Status raise_ceiling(const LockName& lock);
  Result<std::optional<std::int64_t>> reserve(const LockName& lock);
  Result<Statement> reserved_on_disk(std::int64_t reserved);
  Status settle(Statement& testimony);
  Status settle_patiently(const std::function<Status()>& attempt);
  Result<std::int64_t> begin_lineage(const StoreId& id);
  Status store_record(const LockName& lock, const RequestId& request, const std::string& key,
                      const OnceRecord& what);
  Status settle_record(const LockName& lock, const std::string& key);
  int checkpoint(int mode);
  void copy_long_log(int mode);
  Result<Statement*> sql(Sql which);
  Result<Transaction> begin();
  std::int64_t now() const { return options_.clock->now().time_since_epoch().count(); }

  Result<std::optional<AcquireReply>> try_acquire(const AcquireCall& call,
                                                  const std::string& wake_address);
  Result<Found> find(const LockName& lock);
  Status count_from(std::int64_t at, const LockName& lock, Found& found);
  Result<std::vector<Waiter>> waiters_of(const LockName& lock, std::int64_t limit);
  bool is_alive(const Waiter& waiter, std::int64_t at);
  Result<std::optional<Waiter>> first_living_waiter(const LockName& lock, const RequestId& asking);
  Status enqueue(const AcquireCall& call, const std::string& wake_address);
  Result<std::optional<Seen>> look(const AcquireCall& call);
  Millis time_to_rest(bool on_watch) const;
  Result<Granted> grant(const AcquireCall& call, const Found& found);
  Result<bool> run_on(Sql which, const LockName& lock, const RequestId& request);
  Result<bool> drop_waiter(const RequestId& request);
  bool gave_sign(const Waiter& waiter, bool if_unknown);
  Life wake(const Waiter& waiter);
  Status miss_sockets_beside(const Waiter& waiter, const LockName& lock);
  Status give_time(const Waiter& waiter);
  Status drop_silent(const Waiter& waiter, bool dead);
  Status wake_first(const LockName& lock, std::vector<Waiter> first);
  Result<LockStatus> read_status(Statement& row);

  bool may_wait() const;
  Pause next_pause(int attempts, int most_doublings) const;
  // Another process was in the way, and there is still time.
  bool worth_waiting(int attempts);
  bool worth_stepping_aside(int attempts);
  static int on_busy(void* self, int attempts);
  static int on_busy_checkpoint(void* self, int attempts);
  static int on_commit(void* self, sqlite3* db, const char* name, int frames);

  Options options_;
  Patience patience_;
  std::atomic<bool> hurried_ = false;
  WakeFolder wake_folder_;
  int wal_frames_ = 0;
  int copy_at_ = 0;  // so many frames
  bool disk_failed_ = false;
  OwnWaiters own_waiters_;
  Database database_;
  std::array<std::optional<Statement>, kSqlCount> statements_;
};

}  // namespace leasehold::sqlite
