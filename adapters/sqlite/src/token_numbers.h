// Which token numbers may be granted: those whose reservation is known to be on disk.
#pragma once

#include <optional>

#include "store_file.h"

namespace leasehold::sqlite {

// All locks count on from store.last. Why a token never repeats: numbers are reserved first, up to
// store.reserved. When that is known to be on disk, store.ceiling says so, and nobody counts beyond
// it. A process that finds the ceiling below what
// is reserved cannot know whether the one that reserved it died before it was on disk, and makes it
// durable itself. All other commits are left to the kernel, which keeps them when a process dies.
// Only a crash of the machine can lose them, and then the next boot counts on from what was
// reserved.
//
// Not thread safe; outside of every transaction.
class TokenNumbers {
 public:
  explicit TokenNumbers(StoreFile& file) : file_(file) {}

  // No number is left below the ceiling. `unavailable` if none can be had now.
  [[nodiscard]] Status raise_ceiling();
  // Begins a new lineage.
  [[nodiscard]] Result<StoreId> rotate_store_id();

 private:
  Result<std::optional<std::int64_t>> reserve();
  Result<Statement> reserved_on_disk(std::int64_t reserved);
  Result<std::int64_t> begin_lineage(const StoreId& id);

  StoreFile& file_;
};

}  // namespace leasehold::sqlite
