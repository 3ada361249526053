// What the program that started `leasehold hold` writes to it: lines of one word.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "leasehold/error.h"

namespace leasehold::cli {

enum class ParentWord {
  beat,     // "beat", or an empty line: it lives
  release,  // "release"
};

// Bytes as they come, lines as they go. What follows the last line break is nobody's word yet.
class ParentLines {
 public:
  static constexpr std::size_t kLongest = 64;  // of a line, in bytes

  void add(std::string_view bytes) { bytes_ += bytes; }

  // The next whole line, if there is one. Fails with `invalid` for a line that is no word, and for
  // one that is too long, before it has ended; so it does from then on.
  [[nodiscard]] Result<std::optional<ParentWord>> next();

 private:
  std::string bytes_;
};

}  // namespace leasehold::cli
