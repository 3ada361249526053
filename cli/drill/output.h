// How the outcome of a drill is told, and where to.
#pragma once

#include <optional>
#include <string>

#include "cli/command/answer_file.h"
#include "cli/command/exit_status.h"
#include "leasehold/drill/history.h"
#include "leasehold/drill/outcome.h"

namespace leasehold::cli {

class Arguments;

class DrillOutput {
 public:
  // Declares --json, --junit, --html, --history and --details.
  void declare(Arguments& arguments);

  // Something was asked for that only one drill can give.
  bool is_for_one() const { return json_ || details_ || junit_ || html_ || history_; }

  // Opens the files, so that a wrong name does not cost the drill.
  [[nodiscard]] Status open();

  // Prints the verdict and writes the files. Gives the exit status: that of the verdict, or of what
  // could not be written.
  ExitStatus tell(const drill::Outcome& outcome, const drill::History& history);

 private:
  std::string files_written() const;

  bool json_ = false;
  bool details_ = false;
  std::optional<std::string> junit_;
  std::optional<std::string> html_;
  std::optional<std::string> history_;
  std::optional<AnswerFile> junit_file_;
  std::optional<AnswerFile> html_file_;
};

}  // namespace leasehold::cli
