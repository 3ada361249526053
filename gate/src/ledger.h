// The gate's memory that survives SIGKILL and power loss: one file, written by one thread that
// syncs many changes at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>

#include "kit/system/fd.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/error.h"
#include "ledger_format.h"
#include "state_folder.h"

namespace leasehold::gate {

// Counts the changes given to the ledger.
using Version = std::uint64_t;

struct LedgerOptions {
  // Called on the ledger's own thread. All changes up to and including `version` are safe.
  std::function<void(Version version)> durable;
  // The disk failed: nothing after the last durable version is safe, and nothing will be. Once.
  std::function<void(Error error)> failed;
  std::size_t compact_above = std::size_t{4} << 20;  // bytes in the log, unless it holds more
  std::size_t grow_by = std::size_t{1} << 20;        // bytes of zeros, written beforehand
  std::function<int(int fd)> sync;                   // fdatasync; a test puts its own
};

// Reads what a ledger in this folder says, also while a gate writes to it. Fails with `unavailable`
// if there is none, or it is damaged.
[[nodiscard]] Result<LedgerImage> read_ledger(const StateFolder& folder);

class Ledger {
 public:
  // The caller holds the folder's lock. Reads the ledger, or begins one, and rewrites it without
  // what is no longer needed. Fails with `unavailable`; a file that was there is then as it was.
  [[nodiscard]] static Result<std::unique_ptr<Ledger>> open(const StateFolder& folder,
                                                            LedgerOptions options);
  ~Ledger();  // close()

  // What it said when it was opened.
  const ResourceStates& states() const { return states_; }

  // Thread safe, does not block on the disk. Everything about the resource, as of now.
  Version write(const ResourceName& resource, const ResourceState& state);

  // Makes everything durable, rewrites the file and stops. Fails with `unavailable` if the disk
  // does. No other call is in progress.
  [[nodiscard]] Status close();

 private:
  struct Change {
    std::string resource;
    std::string record;
  };

  Ledger(StateFolder folder, LedgerOptions options);
  Status begin();
  void work();
  Status put(std::vector<Change> changes);
  Status write_batch(std::string_view records);
  Status rewrite();
  Status extend(std::size_t needed);
  int sync() const;

  const StateFolder folder_;
  const LedgerOptions options_;
  ResourceStates states_;

  // Only the thread that writes, once it runs.
  kit::Fd file_;
  std::unordered_map<std::string, std::string> records_;  // by resource, as on disk
  std::size_t records_bytes_ = 0;
  std::uint64_t batches_ = 0;
  std::size_t end_ = 0;
  std::size_t size_ = 0;
  std::size_t rewritten_bytes_ = 0;

  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Change> waiting_ LEASEHOLD_GUARDED_BY(mutex_);
  Version given_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  bool closing_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  bool broken_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::thread writer_;
};

}  // namespace leasehold::gate
