// The numbers that an etcd server publishes as a page of text, and the date on it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "doctor/findings.h"
#include "leasehold/error.h"
#include "leasehold/store.h"

namespace leasehold::etcd {

class Metrics {
 public:
  // The body of such a page; lines that are not understood are left out.
  static Metrics parse(std::string_view text);

  // Of a number without labels; nothing if it is not there.
  std::optional<double> value(const std::string& name) const;
  // The upper bound of the bucket in which that share of the observations ends; nothing without
  // observations.
  std::optional<double> quantile(const std::string& histogram, double share) const;

 private:
  struct Bucket {
    double up_to;
    double count;  // of it and all below
  };
  std::map<std::string, double, std::less<>> values_;
  std::map<std::string, std::vector<Bucket>, std::less<>> buckets_;
};

// "Sun, 15 Nov 2026 14:30:00 GMT" among the headers; nothing if there is none.
std::optional<doctor::WallTime> date_of(std::string_view headers);

struct MetricsPage {
  Metrics metrics;
  std::optional<doctor::WallTime> date;  // whole seconds
};

// Asks http://endpoint/metrics. `unavailable` if it is not served there.
[[nodiscard]] Result<MetricsPage> fetch_metrics(const std::string& endpoint,
                                                const CallContext& context);

}  // namespace leasehold::etcd
