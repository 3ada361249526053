// How a holder enters a fence of a resource with a server.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>

#include "leasehold/time.h"

namespace leasehold {

enum class Entry {
  repeatable,  // the same holder may enter again, for example to retry
  single,      // a token that has entered may not enter again: for work that must not be repeated
};

// What a holder enters for. Whatever it is, a token below that of a writer is refused.
enum class Access {
  write,  // alone: a token below that of a reader is refused too
  read,   // beside others who read, with higher or lower tokens; what it does must change nothing
};

struct EnterOptions {
  Entry entry = Entry::repeatable;  // whoever reads may do so again
  Access access = Access::write;    // `invalid` to read with single entry or a sequence number
  // Orders the writes of one holder, so that its own delayed write cannot land on a later one:
  // number all its writes, from 1 on, or none. A call that was `outcome_unknown` may be repeated
  // with the same number and the same write, and is then done once. 0: no number.
  std::int64_t sequence = 0;
  Millis timeout = std::chrono::seconds(5);
  std::stop_token stop = {};
};

}  // namespace leasehold
