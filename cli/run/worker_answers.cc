#include "cli/run/worker_answers.h"

#include <utility>

#include "kit/text/number.h"

namespace leasehold::cli {
namespace {

std::optional<int> number_in(std::string_view line) {
  constexpr std::string_view kWord = "done ";
  if (!line.starts_with(kWord) || line.size() >= WorkerAnswers::kLongest) return std::nullopt;
  return kit::number_in<int>(line.substr(kWord.size()));
}

}  // namespace

void WorkerAnswers::add(std::string_view bytes) {
  for (const char byte : bytes) {
    if (byte == '\n') {
      lines_ += line_ + '\n';
      line_.clear();
    } else if (line_.size() < kLongest) {
      line_ += byte;
    }
  }
}

std::optional<WorkerAnswer> WorkerAnswers::next() {
  const std::size_t end = lines_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = lines_.substr(0, end);
  lines_.erase(0, end + 1);
  return WorkerAnswer{number_in(line), std::move(line)};
}

}  // namespace leasehold::cli
