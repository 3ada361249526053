#include "cli/command/number.h"

#include <charconv>

#include "kit/text/shown_word.h"

namespace leasehold::cli {

Result<std::int64_t> parse_number(std::string_view text, Range<std::int64_t> range) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && range.has(number)) return number;
  return fail(ErrorCode::invalid, "'" + kit::shown(std::string(text)) +
                                      "' is not a whole number from " + written(range.least) +
                                      " to " + written(range.most));
}

}  // namespace leasehold::cli
