#include "cli/command/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "leasehold/process/io.h"

namespace leasehold::cli {

ProgressLine::ProgressLine() : shown_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  draw("");
}

void ProgressLine::draw(std::string text) {
  if (!shown_) return;
  const std::size_t length = text.size();
  text.resize(std::max(length, drawn_), ' ');
  drawn_ = length;
  process::write_within(STDERR_FILENO, "\r" + text + (length == 0 ? "\r" : ""),
                        process::within(std::chrono::seconds(0)));
}

}  // namespace leasehold::cli
