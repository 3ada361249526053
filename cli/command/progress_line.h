// One line on the terminal, written over again and again, and gone at the end.
#pragma once

#include <cstddef>
#include <string>

namespace leasehold::cli {

// Only if stderr is a terminal. Never waits for it: the work goes on beside this.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void draw(std::string text);

 private:
  const bool shown_;
  std::size_t drawn_ = 0;
};

}  // namespace leasehold::cli
