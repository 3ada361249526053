// An attempt as a caller's options describe it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fence/rule.h"
#include "leasehold/enter_options.h"
#include "leasehold/error.h"
#include "leasehold/store.h"

namespace leasehold::fence {

// `content` is what the operations are: with a sequence number they must be the same when they come
// again. Fails with `invalid` for a negative sequence number, and for a reader that writes, numbers
// what it does or asks for single entry.
[[nodiscard]] Result<Attempt> attempt_of(const Token& token, const EnterOptions& options,
                                         bool writes, const std::vector<std::string>& content);

// Begins now.
CallContext context_of(const EnterOptions& options);

// `invalid` for a negative sequence number.
[[nodiscard]] Status check_sequence(std::int64_t sequence);

// `invalid` for what only a writer may ask for.
[[nodiscard]] Status check_reader(const EnterOptions& options);

// The same for the same parts, and hardly ever for others: 32 hexadecimal digits.
std::string fingerprint(const std::vector<std::string>& parts);

}  // namespace leasehold::fence
