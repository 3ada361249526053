// What an adapter finds out about its own live server or file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/store.h"
#include "leasehold/time.h"

namespace leasehold {

// From good to bad.
enum class Severity {
  ok,       // it was looked at, and is as it should be
  note,     // worth knowing; nothing must be done
  unseen,   // it could not be looked at, or not in time: not known, and never taken for ok
  warning,  // a crash, a failover or an operator can make the lock lie
  danger,   // it lies already, or will in ordinary operation
};
// The name as written above.
std::string_view to_string(Severity severity);

// One thing that was looked at. No field ever holds a password.
struct Finding {
  std::string check;  // a stable name: "redis.eviction"
  Severity severity = Severity::ok;
  std::string where;        // the server or file
  std::string seen;         // one sentence, with the value that was measured
  std::string consequence;  // what follows from it; empty if it is ok
  std::string fix;          // the command or setting that mends it; empty if there is nothing to do
};

enum class ExaminedAs { store, fence };

struct ExamineOptions {
  ExaminedAs as = ExaminedAs::store;
  Millis ttl = std::chrono::seconds(30);  // of the leases that will be taken
  CallContext context;
};

// What an adapter has found out.
struct Diagnosis {
  std::vector<Finding> findings;
  std::optional<StoreTraits> traits;  // of a store that can be used
  std::optional<StoreId> lineage;     // of a store that was used before
};

}  // namespace leasehold
