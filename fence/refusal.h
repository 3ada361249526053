// The sentence in which a fence refuses: the same words at every resource.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fence/rule.h"
#include "leasehold/error.h"
#include "leasehold/name.h"
#include "leasehold/token.h"

namespace leasehold::fence {

// What the fence has seen: the number that an entering token is compared with, and whose it is.
struct Threshold {
  std::string lineage;
  std::int64_t token = 0;
  bool adopted = false;      // nobody has entered yet; the operator chose the number
  std::string request = {};  // who has entered with it; empty: not known
};

// With both numbers: `fenced_out`, or `invalid` for what is wrong with the sequence number.
Error refusal(const ResourceName& resource, const Token& token, Reason why, const Threshold& mark);
Error refusal(const ResourceName& resource, const Attempt& attempt, Reason why, const Mark& mark);

// The same for a token of which only is known that it was refused at `mark`: the numbers tell why.
// `single`: it came in a mode in which a token may enter only once.
Error refusal(const ResourceName& resource, const Token& token, const Threshold& mark, bool single);

// As to_string() names it.
std::optional<Reason> reason_named(std::string_view name);

// `invalid`, for an adoption that would lower the mark of the same lineage.
Error would_lower(const ResourceName& resource, std::int64_t mark, TokenNumber at_least);

// `invalid`, for an adoption from a number on that is not above the floor of its store, where there
// is no mark.
Error below_the_floor(const ResourceName& resource, std::int64_t floor, TokenNumber at_least);

// `unavailable`, for a fence at which marks can be lowered and deleted by accident.
Error marks_not_kept();

// `unavailable`, for a mark that cannot be read.
Error damaged_mark(const ResourceName& resource);
// `remove`: how the mark is deleted, to begin afresh: "delete the key 'k'".
Error other_version(const ResourceName& resource, std::int64_t found, std::int64_t known,
                    std::string_view remove);

// `invalid`, for a reset of a resource that the fence does not know.
Error unknown_resource(const ResourceName& resource);

}  // namespace leasehold::fence
