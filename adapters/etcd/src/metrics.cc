#include "metrics.h"

#include <cmath>
#include <ctime>
#include <limits>

#include "kit/text/number.h"
#include "kit/try.h"
#include "net/conversation.h"

namespace leasehold::etcd {
namespace {

using doctor::WallTime;

std::optional<double> number_in(std::string_view text) {
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  return kit::number_in<double>(text);
}

// Nothing for years that nanoseconds do not reach.
std::optional<WallTime> wall_time(std::chrono::seconds since_epoch) {
  using Span = WallTime::duration;
  const auto farthest = std::chrono::duration_cast<std::chrono::seconds>(Span::max());
  if (since_epoch >= farthest || since_epoch <= -farthest) return std::nullopt;
  return WallTime(since_epoch);
}

std::string_view take_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

HostPort host_of(const std::string& endpoint) {
  const auto colon = endpoint.rfind(':');
  std::string host = endpoint.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return {std::move(host), endpoint.substr(colon + 1)};
}

}  // namespace

Metrics Metrics::parse(std::string_view text) {
  constexpr std::string_view bucket = "_bucket{le=\"";
  Metrics metrics;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const auto space = line.rfind(' ');
    if (line.starts_with('#') || space == std::string_view::npos) continue;
    const auto value = number_in(line.substr(space + 1));
    const std::string_view name = line.substr(0, space);
    if (!value) continue;
    if (name.find('{') == std::string_view::npos) {
      metrics.values_[std::string(name)] = *value;
      continue;
    }
    const auto at = name.find(bucket);
    const auto end = name.find("\"}", at == std::string_view::npos ? 0 : at + bucket.size());
    if (at == std::string_view::npos || end == std::string_view::npos) continue;
    const auto up_to = number_in(name.substr(at + bucket.size(), end - at - bucket.size()));
    if (up_to) metrics.buckets_[std::string(name.substr(0, at))].push_back({*up_to, *value});
  }
  return metrics;
}

std::optional<double> Metrics::value(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::optional<double> Metrics::quantile(const std::string& histogram, double share) const {
  const auto found = buckets_.find(histogram);
  if (found == buckets_.end() || found->second.empty()) return std::nullopt;
  const double all = found->second.back().count;
  if (all <= 0) return std::nullopt;
  for (const Bucket& it : found->second) {
    if (it.count >= all * share) return it.up_to;
  }
  return found->second.back().up_to;
}

std::optional<WallTime> date_of(std::string_view headers) {
  constexpr std::string_view field = "Date: ";
  while (!headers.empty()) {
    const std::string_view line = take_line(headers);
    if (!line.starts_with(field)) continue;
    std::tm parts{};
    const std::string value(line.substr(field.size()));
    if (strptime(value.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts) == nullptr) break;
    return wall_time(std::chrono::seconds(timegm(&parts)));
  }
  return std::nullopt;
}

Result<MetricsPage> fetch_metrics(const std::string& endpoint, const CallContext& context) {
  // Such an old version of HTTP is answered in one piece, and the connection closed.
  const auto page = TRY(net::converse(
      host_of(endpoint), "GET /metrics HTTP/1.0\r\nHost: " + endpoint + "\r\n\r\n", context));
  const auto end = page.find("\r\n\r\n");
  if (end == std::string::npos || page.find(" 200 ") > page.find('\r')) {
    return fail(ErrorCode::unavailable, endpoint + ": /metrics is not served there");
  }
  const std::string_view whole = page;
  return MetricsPage{Metrics::parse(whole.substr(end + 4)), date_of(whole.substr(0, end + 2))};
}

}  // namespace leasehold::etcd
