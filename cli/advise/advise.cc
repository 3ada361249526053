#include <unistd.h>

#include <algorithm>

#include "cli/advise/advice.h"
#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/subcommand.h"
#include "cli/command/text.h"
#include "leasehold/process/io.h"

namespace leasehold::cli {
namespace {

std::vector<std::string> words_of(const Question& asked) {
  std::vector<std::string> words;
  for (const Choice& choice : asked.choices) words.emplace_back(choice.word);
  return words;
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

Error missing(const Question& asked) {
  const std::string flag = "--" + std::string(asked.flag);
  return {ErrorCode::invalid, "an answer is missing, and there is no terminal to ask on: give " +
                                  flag + " " + joined(words_of(asked), "|") + " (" +
                                  std::string(asked.text) + ")"};
}

// Questions go to stderr, so that the answer can be sent elsewhere.
bool can_ask() {
  return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

void say(const std::string& text) {
  process::write_all(STDERR_FILENO, text);
}

std::string trimmed(std::string line) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  line.erase(std::find_if_not(line.rbegin(), line.rend(), is_blank).base(), line.end());
  line.erase(line.begin(), std::find_if_not(line.begin(), line.end(), is_blank));
  return line;
}

// The one that begins with `typed`; nothing if there is none, or more than one.
std::optional<std::string> complete(const std::string& typed,
                                    const std::vector<std::string>& words) {
  std::optional<std::string> found;
  for (const std::string& word : words) {
    if (!word.starts_with(typed)) continue;
    if (found) return std::nullopt;
    found = word;
  }
  return found;
}

void put(const Question& asked) {
  std::string text = "\n" + std::string(asked.text) + "\n";
  for (const Choice& choice : asked.choices) {
    text += "  " + std::string(choice.word) +
            std::string(11 - std::min<std::size_t>(choice.word.size(), 10), ' ') +
            std::string(choice.meaning) + "\n";
  }
  say(text);
}

// Nothing if the input has ended.
std::optional<std::string> ask(const Question& asked) {
  const auto words = words_of(asked);
  put(asked);
  for (;;) {
    say("[" + joined(words, "/") + ", ? for help] ");
    const std::string line = process::read_until(STDIN_FILENO, "\n");
    if (line.empty()) return std::nullopt;
    const std::string typed = trimmed(line);
    if (auto word = complete(typed, words)) return word;
    if (typed == "?") {
      say("  " + wrapped(asked.help, 2) + "\n");
    } else if (!typed.empty()) {
      say("  '" + visible(typed) + "' is not one of " + joined(words, ", ") + "\n");
    }
  }
}

class Advise final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "Asks what happens if the work runs twice, and what the resource can do, until one "
        "recommendation is left: a command, some SQL or C++, or no lock at all. It shows the "
        "answers that led there, so that you can disagree. What is given as an option is not "
        "asked; without a terminal every answer on the way must be given.");
    for (const Question& one : questions()) {
      arguments.choice("--" + std::string(one.flag), words_of(one), answers_[std::string(one.flag)],
                       std::string(one.text));
    }
    arguments.flag("--json", json_, "For programs: one JSON object");
    arguments.example("leasehold advise", "be asked");
    arguments.example("leasehold advise --harmless no --idempotent yes --throughput no",
                      "all answers at once");
    arguments.example("leasehold advise --harmless yes --throughput no",
                      "often the answer is: no lock");
  }

  Ending execute() override {
    Walk walked = walk(answers_);
    while (walked.open) {
      if (!can_ask()) return report(missing(*walked.open));
      const auto answer = ask(*walked.open);
      if (!answer) {
        say("\n");
        return report(Error(ErrorCode::invalid, "there is no advice without an answer to --" +
                                                    std::string(walked.open->flag)));
      }
      answers_[std::string(walked.open->flag)] = *answer;
      walked = walk(answers_);
      if (walked.found) say("\n");
    }
    return print(json_ ? advice_json(walked) : advice_text(walked));
  }

 private:
  Answers answers_;
  bool json_ = false;
};

}  // namespace

SubcommandEntry advise_command() {
  return {"advise", "Find out whether you need a lock, and which one", make<Advise>};
}

}  // namespace leasehold::cli
