// A file that a subcommand writes its answer into.
#pragma once

#include <string>

#include "leasehold/error.h"
#include "leasehold/process/io.h"

namespace leasehold::cli {

// Opened before the work, so that a wrong name does not cost it; written after. Fails with
// `outcome_unknown` and the system's words.
class AnswerFile {
 public:
  [[nodiscard]] static Result<AnswerFile> open(const std::string& name);

  // Replaces what the file has.
  [[nodiscard]] Status write(const std::string& text);

 private:
  AnswerFile(std::string name, process::Fd fd) : name_(std::move(name)), fd_(std::move(fd)) {}
  std::string name_;
  process::Fd fd_;
};

}  // namespace leasehold::cli
