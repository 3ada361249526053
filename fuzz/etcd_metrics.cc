// The page of numbers that an etcd server, or whoever answers at its port, shows the doctor.
//
// Rules: a number is found under its name, and a quantile is the bound of one of the buckets.
#include <cmath>
#include <string>

#include "adapters/etcd/src/metrics.h"
#include "fuzz/fuzz.h"

namespace leasehold::fuzz {
namespace {

constexpr const char* kHistogram = "h";

void check(std::string_view page) {
  const etcd::Metrics metrics = etcd::Metrics::parse(page);
  (void)metrics.value("v");
  const auto median = metrics.quantile(kHistogram, 0.5);
  const auto worst = metrics.quantile(kHistogram, 1);
  must(median.has_value() == worst.has_value(), "a histogram has all its quantiles, or none");
  (void)etcd::date_of(page);

  const std::string more = std::string(page) + "\nours 42\n";
  const auto ours = etcd::Metrics::parse(more).value("ours");
  must(ours && *ours == 42, "a line is read whatever stands before it");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  leasehold::fuzz::check(leasehold::fuzz::text_of(data, size));
  return 0;
}
