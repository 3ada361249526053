// What makes the locks of a store, or the fence of a resource, worth less than they look.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/store.h"
#include "leasehold/time.h"

namespace leasehold {

class Registry;

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

struct DiagnoseOptions {
  Millis ttl = std::chrono::seconds(30);
  Millis within = std::chrono::seconds(10);  // what is not done by then is `unseen`
  std::stop_token stop = {};
};

struct DiagnosisReport {
  std::string store;                 // addresses without secrets
  std::optional<std::string> fence;  // if one was given
  std::optional<StoreTraits> traits;
  std::vector<Finding> findings;

  Severity worst() const;  // ok if there are none
};

// Examines the store, the fence if there is one, and whether they belong together. Changes nothing
// that a lock or a fence uses; a server may be asked to write and to forget a value of its own, to
// see how long that takes. Blocks about `within`; reading the marks of a fence has a limit of its
// own, up to half a minute.
// Fails with `invalid` (URL), `unsupported` (scheme) or `unavailable` if a server cannot be
// reached at all; what is wrong with one that answers is a finding.
[[nodiscard]] Result<DiagnosisReport> diagnose(const Registry& registry, std::string_view store,
                                               const std::optional<std::string>& fence,
                                               const DiagnoseOptions& options);

}  // namespace leasehold
