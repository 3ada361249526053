// Under the lock of a fenced thing: what every operation begins with.
#pragma once

#include <string>

#include "fence/rule.h"
#include "leasehold/files/fence.h"
#include "vault.h"

namespace leasehold::files {

struct Inside {
  Vault vault;  // locked
  Version version;

  std::string path() const { return vault.place().path.native(); }
  const fence::Mark& mark() const { return version.record.mark; }
  // What is remembered now, with another mark.
  Record record_with(fence::Mark mark) const;
};

[[nodiscard]] Result<Inside> go_inside(const std::filesystem::path& path,
                                       const FenceOptions& options);

[[nodiscard]] Status check_write(const WriteOptions& options);

// Every write has a number here. Fails with `invalid` if none is left.
[[nodiscard]] Result<fence::Attempt> write_attempt(const Inside& inside, const Token& token,
                                                   const WriteOptions& options);

// The refusal, counted durably if it is one of a stale holder.
[[nodiscard]] Error refused(Inside& inside, const fence::Attempt& attempt, fence::Reason why);

}  // namespace leasehold::files
