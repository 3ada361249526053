// Who waits for a lock, in which order, and who of them lives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "own_waiters.h"
#include "store_file.h"
#include "wake_socket.h"

namespace leasehold::sqlite {

struct Waiter {
  RequestId request;
  std::string owner;
  std::string wake;
  std::int64_t alive_until;
  Mode mode;
  std::string note;
};

// What a waiter ahead of others, or a message, calls the holder.
std::string holder_label(std::string_view owner, bool kept);

// The table `waiter`. Each call is inside a transaction of its caller, unless it says otherwise.
// Not thread safe.
class WaiterQueue {
 public:
  explicit WaiterQueue(StoreFile& file);

  // How often somebody of each process looks whether those before it have died or frozen.
  static constexpr Millis kWatchEvery = std::chrono::seconds(2);

  WakeFolder& wake_folder() { return wake_folder_; }

  // Of this process.
  bool empty_here() const { return own_.empty(); }
  bool is_here(const RequestId& request) const { return own_.has(request); }
  // It will ask again, if it has a place still.
  void forget_here(const RequestId& request) { own_.remove(request); }

  // Those who are first; all if `limit` is negative.
  [[nodiscard]] Result<std::vector<Waiter>> waiting(const LockName& lock, std::int64_t limit);
  bool is_alive(const Waiter& waiter, std::int64_t at);
  // Takes those out of the queue who are not alive. Returns the others.
  [[nodiscard]] Result<std::vector<Waiter>> drop_all_silent(const LockName& lock);

  [[nodiscard]] Result<bool> has_place(const RequestId& request);

  // Of those before `asking` that it cannot share with, at a lock that could be granted to `room`
  // requests: the first, if at least `room` of them live; or one that wants another use; else
  // nobody. The living ones are called, the others before it are taken out of the queue.
  enum class Numbers { same, any };  // of permits: those of another number may be of the same use
  [[nodiscard]] Result<std::optional<Waiter>> first_living(const LockName& lock,
                                                           const RequestId& asking, Mode mode,
                                                           std::int64_t room, Numbers numbers);

  // Takes or keeps a place.
  [[nodiscard]] Status enqueue(const AcquireCall& call, const std::string& wake_address);
  // False if it has none.
  [[nodiscard]] Result<bool> leave(const RequestId& request);

  struct Seen {
    Queued reply;
    bool signs_elsewhere;  // its process gives the signs of life, the row need not be written
    bool on_watch;         // it is to see whether those before it live
  };
  // From the place of a waiter at a lock that is held; nothing if it has no place, or may be
  // granted now, or is to see whether those before it live. Only reads, and needs no transaction.
  [[nodiscard]] Result<std::optional<Seen>> look(const AcquireCall& call);

  // After the commit that freed the lock: a waiter woken earlier would find it still held. `first`
  // was read before that commit; who queues later finds the lock free.
  [[nodiscard]] Status wake_first(const LockName& lock, std::vector<Waiter> first);

 private:
  enum class Life {
    coming,  // has been called, and has still time
    idle,    // was never called, as far as is known its process lives
    silent,  // did not come when it was called, or its process gave no sign of life
    dead,
  };
  static bool may_come(Life life) { return life == Life::coming || life == Life::idle; }

  Result<bool> call(const Waiter& waiter, const LockName& lock);
  bool gave_sign(const Waiter& waiter, bool if_unknown);
  Life wake(const Waiter& waiter);
  Status miss_sockets_beside(const Waiter& waiter, const LockName& lock);
  Status give_time(const Waiter& waiter);
  Status drop_silent(const Waiter& waiter, bool dead);
  Result<std::vector<Waiter>> before(const LockName& lock, const RequestId& asking, Mode mode,
                                     std::int64_t limit);
  Result<std::vector<Waiter>> read(Statement& row);
  Result<std::optional<Seen>> look_at(Prepared& which, const AcquireCall& call);
  Millis time_to_rest(bool on_watch) const;
  Result<Statement*> sql(Prepared& statement) { return statement.in(file_.connection()); }

  StoreFile& file_;
  WakeFolder wake_folder_;
  OwnWaiters own_;
  Prepared waiters_of_;
  Prepared before_;
  Prepared unshared_before_;
  Prepared place_;
  Prepared enqueue_;
  Prepared look_;
  Prepared look_at_many_;
  Prepared call_;
  Prepared addresses_;
  Prepared miss_;
  Prepared drop_;
  Prepared drop_at_;
};

}  // namespace leasehold::sqlite
