// The lock store's file: its schema, its boots, and what is known to be on the disk.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "database.h"
#include "leasehold/random.h"
#include "leasehold/store.h"
#include "machine.h"
#include "turnstile.h"

namespace leasehold::sqlite {

// What a lock store's file says of itself: application_id and user_version.
inline constexpr std::int64_t kApplicationId = 0x4c656173;  // "Leas"
inline constexpr int kFormat = 4;

bool is_lock_store(Connection connection);

// As times are stored.
std::int64_t nanos(Millis length);
Millis millis(std::int64_t nanoseconds);

// The first column of the first row; 0 if there is none.
[[nodiscard]] Result<std::int64_t> number(Connection connection, std::string_view sql);

// Others can see what was committed, though it may not be on disk.
[[nodiscard]] Status after_commit(Status settled);

// Prepared at its first use, for the life of the file.
class Prepared {
 public:
  explicit Prepared(std::string sql) : sql_(std::move(sql)) {}
  [[nodiscard]] Result<Statement*> in(Connection connection);

 private:
  std::string sql_;
  std::optional<Statement> statement_;
};

// Not thread safe; blocking. Many processes may have the same file open.
class StoreFile {
 public:
  struct Options {
    std::string path;
    bool create = true;  // on first use
    MachineIdentity machine;
    const Clock* clock = nullptr;
    Random* random = nullptr;
    const char* vfs = nullptr;
    // Numbers reserved at once. Who keeps the log in use keeps everybody from the next ones.
    std::int64_t token_block = 100'000;
    int checkpoint_frames = 1500;
    int frames_at_close = 96;  // a longer log would make the next process start slowly
  };
  // `unavailable` or `unsupported` with the reason.
  [[nodiscard]] static Result<std::unique_ptr<StoreFile>> open(Options options,
                                                               CallContext context);
  ~StoreFile();
  StoreFile(const StoreFile&) = delete;

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

  const Options& options() const { return options_; }
  Connection connection() const { return database_.connection(); }
  std::int64_t now() const { return options_.clock->now().time_since_epoch().count(); }
  // What is read makes no sense.
  Error damaged() const;

  [[nodiscard]] Result<Transaction> begin();

  // Makes durable what was committed before, and then says so by `testimony`, in a commit of its
  // own.
  [[nodiscard]] Status settle(Statement& testimony);
  // Until `attempt` has settled something. It keeps no statement from one to the next: other
  // threads come between.
  [[nodiscard]] Status settle_patiently(const std::function<Status()>& attempt);

  // Whether somebody was in the way, and there is still time: then others had their turn
  // meanwhile. If it is false, this object may be gone.
  bool worth_stepping_aside(int attempts);

 private:
  StoreFile(Options options, Database database);

  Status prepare_file();
  Status check_empty() const;
  Status use_log();
  Status create_schema();
  Status enter_boot();

  void note_failed_sync(int code);
  int checkpoint(int mode);
  void copy_long_log(int mode);

  bool may_wait() const;
  Pause next_pause(int attempts, int most_doublings) const;
  // Another process was in the way, and there is still time.
  bool worth_waiting(int attempts);
  static int on_busy(void* self, int attempts);
  static int on_busy_checkpoint(void* self, int attempts);
  static int on_commit(void* self, sqlite3* db, const char* name, int frames);

  Options options_;
  Patience patience_;
  std::atomic<bool> hurried_ = false;
  int wal_frames_ = 0;
  int copy_at_ = 0;  // so many frames
  bool disk_failed_ = false;
  Database database_;
  Prepared begin_{"BEGIN IMMEDIATE"};
  Prepared commit_{"COMMIT"};
};

}  // namespace leasehold::sqlite
