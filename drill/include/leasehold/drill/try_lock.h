// Was a lock that nobody waits for linearizable? For stores that keep no log of their own: judged
// by what clients asked and were told, so it takes a search.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leasehold/drill/history.h"

namespace leasehold::drill {

enum class Answer { yes, no, unknown };
std::string_view to_string(Answer answer);

struct TryLockVerdict {
  Answer answer = Answer::unknown;
  std::string sentence;              // why not yes
  std::vector<std::size_t> records;  // of the operation that cannot be explained, for `no`
  std::size_t operations = 0;
};

// Beyond these the answer is `unknown`.
struct TryLockLimits {
  std::size_t operations_in_a_window = 1000;  // between two moments with nothing under way
  std::size_t unknown_at_once = 10;
  std::size_t states = 200'000;
};

// Reads the acquires and releases of clients on this lock; the history is sorted first.
//
// acquire: `ok` if the lock was free, or its holder's deadline was over; `fail` if another held it;
//          `unknown` for everything else, also for a store that was down.
// release: `ok` if it was held until then; `fail` if it had ended before; `unknown`.
//
// An operation took effect at one moment between its invoke and its answer. One with an unknown
// outcome may take effect at any time after its invoke, or never; what it took may end at any time.
// It is known after all if the resource accepted its request.
TryLockVerdict check_try_lock(History& history, LockRef lock, const TryLockLimits& limits = {});

}  // namespace leasehold::drill
