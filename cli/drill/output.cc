#include "cli/drill/output.h"

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/drill/statuses.h"
#include "kit/try.h"
#include "leasehold/drill/history_file.h"
#include "leasehold/drill/report.h"

namespace leasehold::cli {
namespace {

Colour colour_of(drill::Mood mood) {
  switch (mood) {
    case drill::Mood::good:
      return Colour::green;
    case drill::Mood::bad:
      return Colour::red;
    case drill::Mood::plain:
      return Colour::none;
  }
  return Colour::none;
}

Colour colour_of(drill::Verdict verdict) {
  switch (verdict) {
    case drill::Verdict::held:
      return Colour::green;
    case drill::Verdict::damage:
      return Colour::red;
    case drill::Verdict::too_little:
      return Colour::yellow;
  }
  return Colour::none;
}

ExitStatus status_of(drill::Verdict verdict) {
  switch (verdict) {
    case drill::Verdict::held:
      return ExitStatus::done;
    case drill::Verdict::damage:
      return kDamage;
    case drill::Verdict::too_little:
      return kTooLittle;
  }
  return ExitStatus::internal;
}

std::string mode_of(const drill::Outcome& outcome) {
  if (outcome.readers > 0) {
    return ", of which " + std::to_string(outcome.readers) +
           (outcome.readers == 1 ? " only reads" : " only read");
  }
  if (outcome.mode == "election") return ", one of whom leads";
  if (outcome.partitions > 0) {
    return " with " + std::to_string(outcome.partitions) +
           " partitions, each a resource of its own (NAME/number)";
  }
  if (outcome.permits == 0) return "";
  return " with " + std::to_string(outcome.permits) +
         " permits, each for a resource of its own (NAME#slot)";
}

std::string setting_of(const drill::Outcome& outcome) {
  return "store " + visible(outcome.store) + ", fence " + visible(outcome.fence) +
         (outcome.fence_by_claim ? " (by claim: the store has no tokens)" : "") + "\n" +
         std::to_string(outcome.workers) + " workers for each of " + std::to_string(outcome.locks) +
         (outcome.partitions > 0 ? " group" : " lock") + (outcome.locks == 1 ? "" : "s") +
         mode_of(outcome) + ", TTL " + std::to_string(outcome.ttl.count()) + " ms, seed " +
         std::to_string(outcome.seed) + "\n";
}

std::string table_of(const drill::Outcome& outcome) {
  Table table;
  for (const drill::Row& row : rows(outcome)) {
    table.add({{row.name}, {row.value, colour_of(row.mood)}, {row.meaning, Colour::dim}});
  }
  return table.str();
}

std::string text_of(const drill::Outcome& outcome) {
  std::string text = setting_of(outcome) + "\n" + table_of(outcome);
  for (const std::string& note : outcome.notes) text += "note: " + visible(note) + "\n";
  return text + "\n" + coloured(colour_of(judge(outcome)), sentence(outcome)) + "\n";
}

Status open_if_named(const std::optional<std::string>& name, std::optional<AnswerFile>& into) {
  if (!name) return {};
  auto file = TRY(AnswerFile::open(*name));
  into = std::move(file);
  return {};
}

}  // namespace

void DrillOutput::declare(Arguments& arguments) {
  arguments.flag("--json", json_, "For programs: one JSON object instead of the table");
  arguments.option("--junit", "FILE", junit_, "Write the verdict as JUnit XML, for a build server");
  arguments.option("--html", "FILE", html_,
                   "Write a page with the verdict and the timeline drawn; it needs nothing else");
  arguments.option("--history", "FILE", history_, "Keep what happened, for the checker");
  arguments.flag("--details", details_, "Show the records of what was broken");
}

Status DrillOutput::open() {
  TRY(open_if_named(junit_, junit_file_));
  return open_if_named(html_, html_file_);
}

std::string DrillOutput::files_written() const {
  std::string text;
  for (const auto& [what, file] : {std::pair("page", &html_), std::pair("JUnit file", &junit_),
                                   std::pair("history", &history_)}) {
    if (*file) text += std::string("The ") + what + " is in " + visible(**file) + ".\n";
  }
  return text;
}

ExitStatus DrillOutput::tell(const drill::Outcome& outcome, const drill::History& history) {
  Status written;
  if (history_) written = save_history(history, *history_, drill::current_boot());
  if (written && junit_file_) written = junit_file_->write(to_junit(outcome, history));
  if (written && html_file_) written = html_file_->write(to_html(outcome, history));
  std::string text = json_ ? to_json(outcome) : text_of(outcome);
  if (details_ && !json_) text += "\n" + to_text(outcome.report, history);
  if (written && !json_) text += files_written();
  const ExitStatus printed = print(text);
  if (!written) return report(written.error());
  return printed != ExitStatus::done ? printed : status_of(judge(outcome));
}

}  // namespace leasehold::cli
