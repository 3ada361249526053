// Under the lock of a fenced thing: what every operation begins with.
#pragma once

#include "rules.h"
#include "vault.h"

namespace leasehold::files {

struct Inside {
  Vault vault;  // locked
  Version version;

  std::string path() const { return vault.place().path.native(); }
};

[[nodiscard]] Result<Inside> go_inside(const std::filesystem::path& path,
                                       const FenceOptions& options);

[[nodiscard]] Status check_write(const WriteOptions& options);

Verdict judge_entry(const Inside& inside, const Token& token, Entry entry);
Verdict judge_write(const Inside& inside, const Token& token, const WriteOptions& options);

// Counts `error` if it is a refusal, durably, and returns it.
[[nodiscard]] Error counted(Inside& inside, Error error);

}  // namespace leasehold::files
