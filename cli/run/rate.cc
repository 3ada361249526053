#include "cli/run/rate.h"

#include "cli/command/duration.h"
#include "cli/command/lease_options.h"
#include "cli/command/number.h"
#include "cli/command/output.h"
#include "kit/try.h"

namespace leasehold::cli {

Result<Rate> parse_rate(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    return fail(ErrorCode::invalid,
                "'" + shown(std::string(text)) +
                    "' has no interval; write how many in how long, as in 10/1m");
  }
  const std::int64_t count = TRY(parse_number(text.substr(0, slash), kPermitCounts));
  const Millis interval = TRY(parse_duration(text.substr(slash + 1), kTtls));
  return Rate{count, interval};
}

std::string written(const Rate& rate) {
  return std::to_string(rate.count) + "/" + written(rate.interval);
}

}  // namespace leasehold::cli
