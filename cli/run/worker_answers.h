// What a command that works on partitions writes to us: lines "done NUMBER".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::cli {

struct WorkerAnswer {
  std::optional<int> done;  // nothing: it is no answer
  std::string line;         // as it came; the beginning of a long one
};

// Bytes as they come, lines as they go. What follows the last line break is no answer yet.
class WorkerAnswers {
 public:
  static constexpr std::size_t kLongest = 64;  // of what is kept of a line, in bytes

  void add(std::string_view bytes);
  // The next whole line, if there is one.
  std::optional<WorkerAnswer> next();

 private:
  std::string lines_;  // whole ones
  std::string line_;   // the one that is coming
};

}  // namespace leasehold::cli
