// What makes the locks of a store, or the fence of a resource, worth less than they look.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/examination.h"
#include "leasehold/time.h"

namespace leasehold {

class Registry;

struct DiagnoseOptions {
  Millis ttl = std::chrono::seconds(30);
  Millis timeout = std::chrono::seconds(10);  // what is not done by then is `unseen`
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
