// Which token numbers may be granted: those whose reservation is known to be on disk.
#pragma once

#include <optional>

#include "store_file.h"

namespace leasehold::sqlite {

// Each lock counts its own tokens; three numbers of the store bound all of them. Why a token never
// repeats: numbers are reserved first, up to store.reserved. When that is known to be on disk,
// store.ceiling says so, and no lock counts beyond it. A process that finds the ceiling below what
// is reserved cannot know whether the one that reserved it died before it was on disk, and makes it
// durable itself. All other commits are left to the kernel, which keeps them when a process dies.
// Only a crash of the machine can lose them, and then the next boot begins above what was reserved:
// every token of a boot is above store.floor.
//
// Not thread safe; outside of every transaction.
class TokenNumbers {
 public:
  explicit TokenNumbers(StoreFile& file) : file_(file) {}

  // No number is left for this lock below the ceiling. `unavailable` if none can be had now.
  [[nodiscard]] Status raise_ceiling(const LockName& lock);
  // Begins a new lineage.
  [[nodiscard]] Result<StoreId> rotate_store_id();

 private:
  Result<std::optional<std::int64_t>> reserve(const LockName& lock);
  Result<Statement> reserved_on_disk(std::int64_t reserved);
  Result<std::int64_t> begin_lineage(const StoreId& id);

  StoreFile& file_;
};

}  // namespace leasehold::sqlite
