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

struct EnterOptions {
  Entry entry = Entry::repeatable;
  // Orders the writes of one holder, so that its own delayed write cannot land on a later one:
  // number all its writes, from 1 on, or none. A call that was `outcome_unknown` may be repeated
  // with the same number and the same write, and is then done once. 0: no number.
  std::int64_t sequence = 0;
  Millis timeout = std::chrono::seconds(5);
  std::stop_token stop = {};
};

}  // namespace leasehold
