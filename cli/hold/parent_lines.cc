#include "cli/hold/parent_lines.h"

#include "kit/text/shown_word.h"

namespace leasehold::cli {
namespace {

constexpr const char* kWords = "write 'beat', 'release' or an empty line";

}  // namespace

Result<std::optional<ParentWord>> ParentLines::next() {
  const std::size_t end = bytes_.find('\n');
  if (end == std::string::npos && bytes_.size() <= kLongest) return std::nullopt;
  if (std::min(end, bytes_.size()) > kLongest) {
    return fail(ErrorCode::invalid, "standard input: a line is longer than " +
                                        std::to_string(kLongest) + " bytes; " + kWords);
  }
  const std::string line = bytes_.substr(0, end);
  if (line.empty() || line == "beat" || line == "release") {
    bytes_.erase(0, end + 1);
    return line == "release" ? ParentWord::release : ParentWord::beat;
  }
  return fail(ErrorCode::invalid,
              "standard input: '" + kit::shown(line) + "' is not a word; " + kWords);
}

}  // namespace leasehold::cli
