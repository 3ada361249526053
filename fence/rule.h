// Who may enter: the rule of every fence.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "fence/mark.h"
#include "leasehold/enter_options.h"
#include "leasehold/error.h"
#include "leasehold/token.h"

namespace leasehold::fence {

// One holder that wants to enter.
struct Attempt {
  Token token;
  Access access = Access::write;
  bool writes = false;        // false: it changes nothing
  bool single = false;        // a token that has entered may not enter again
  std::int64_t sequence = 0;  // orders the holder's writes; 0: none
  std::string write = {};     // names the write: no two have the same; empty: it cannot be told
  bool operator==(const Attempt&) const = default;
};

using Reason = Refusal::Reason;

struct Enter {
  Mark next;  // what to remember with it
};
struct Repeat {};  // this very write was the holder's last
struct Refuse {
  Reason why;
};
using Verdict = std::variant<Enter, Repeat, Refuse>;

Verdict judge(const Mark& mark, const Attempt& attempt);

// Lets `lineage` in from `at_least` on, and nobody else. Fails with `invalid` if that would lower
// the mark, or the floor where there is no mark.
[[nodiscard]] Result<Mark> adopted(const ResourceName& resource, const Mark& mark,
                                   const Lineage& lineage, TokenNumber at_least);

}  // namespace leasehold::fence
