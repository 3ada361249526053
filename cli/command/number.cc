#include "cli/command/number.h"

#include "kit/text/number.h"
#include "kit/text/shown_word.h"

namespace leasehold::cli {

Result<std::int64_t> parse_number(std::string_view text, Range<std::int64_t> range) {
  const auto number = kit::number_in<std::int64_t>(text);
  if (number && range.has(*number)) return *number;
  return fail(ErrorCode::invalid, "'" + kit::shown(std::string(text)) +
                                      "' is not a whole number from " + written(range.least) +
                                      " to " + written(range.most));
}

}  // namespace leasehold::cli
