// A timeline as text for the page's script: small, and quick to read.
#pragma once

#include <string>

#include "timeline.h"

namespace leasehold::drill {

// Base64 of one run of numbers, seven bits a byte, the lowest first. For each lane: how many
// leases, faults and marks, then these. Times are whole microseconds from the timeline's beginning,
// each the distance to the one before it in its list; tokens likewise, with the sign in the lowest
// bit.
//   lease: from, length of the lease, length believed after it, first token, last - first token,
//          count - 1
//   fault: from, length, what, count - 1
//   mark:  time, sign, token, count - 1
std::string packed(const Timeline& timeline);

}  // namespace leasehold::drill
