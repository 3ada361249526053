// Arguments of a subcommand, declared once: parsing, --help, the manual page and the completions
// all come from here. CLI11 stays behind this header.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/command/duration.h"
#include "cli/command/exit_status.h"
#include "cli/command/number.h"
#include "leasehold/error.h"

namespace leasehold::cli {

struct OptionDoc {
  std::vector<std::string> names;  // "--verbose", "-v"
  std::string value;               // what its value is called; empty: a flag
  std::string help;
  std::vector<std::string> choices;  // or suggestions
  bool required = false;
};

struct PositionalDoc {
  std::string name;
  std::string help;
  std::vector<std::string> choices;
  bool required = true;
};

struct ExampleDoc {
  std::string command;
  std::string what;
};

struct ExitStatusDoc {
  std::string status;
  std::string meaning;
  std::string in_short;  // of the program; empty: it is that of one command
};

// One command as a reader sees it.
struct CommandDoc {
  std::string path;  // "leasehold fence show"
  std::string name;
  std::string summary;
  std::string usage;  // what follows the path
  std::string description;
  std::vector<PositionalDoc> positionals;
  std::vector<OptionDoc> options;
  std::vector<ExampleDoc> examples;
  std::vector<ExitStatusDoc>
      exit_statuses;  // of the program: of all its commands, with their names
  std::vector<CommandDoc> children;
};

// Says which command was meant by `word`, or which there are instead of it, or of nothing.
Error no_command(const CommandDoc& above, const std::string& word);

// Says that `word`, as in "--colour=red", is no option of `at`, and which one was meant.
Error no_option(const CommandDoc& at, const std::string& word);

class Arguments {
 public:
  // The command's whole argument list as a reader should see it; default: made from what follows.
  void usage(std::string text);
  void description(std::string text);
  void example(std::string command, std::string what);

  // Required, in this order. `into` outlives the parse, here and below.
  // `suggestions`: what completion offers; others are taken as well.
  void positional(const std::string& name, std::string& into, std::string help,
                  std::vector<std::string> suggestions = {});
  // The last of them may be left out: `into` is then as it was.
  void optional_positional(const std::string& name, std::optional<std::string>& into,
                           std::string help);
  void positional_choice(const std::string& name, std::vector<std::string> choices,
                         std::string& into, std::string help);

  // `names` as in "--verbose,-v"; `value` names the value in the help.
  void option(const std::string& names, const std::string& value, std::optional<std::string>& into,
              std::string help, std::vector<std::string> suggestions = {});
  // One argument that the shell reads as a command. Who writes several is told to quote them.
  void shell_command(const std::string& names, const std::string& value,
                     std::optional<std::string>& into, std::string help);
  void required_option(const std::string& names, const std::string& value, std::string& into,
                       std::string help);
  void choice(const std::string& names, std::vector<std::string> choices, std::string& into,
              std::string help);
  template <class Value>
  void choice(const std::string& names, std::vector<std::pair<std::string, Value>> choices,
              Value& into, std::string help) {
    std::vector<std::string> words;
    for (const auto& [word, value] : choices) words.push_back(word);
    add_choice(names, std::move(words), std::move(help),
               [choices, &into](std::size_t index) { into = choices[index].second; });
  }

  // The help goes on with the range and the default: what `into` has, or `usual`. What is not in
  // the range is refused, with the same words.
  void duration(const std::string& names, Millis& into, const std::string& help,
                Range<Millis> range = kAnyDuration);
  void duration(const std::string& names, std::optional<Millis>& into, const std::string& help,
                Range<Millis> range = kAnyDuration, const std::string& usual = "");
  template <std::integral Number>
  void number(const std::string& names, Number& into, const std::string& help,
              Range<std::int64_t> range) {
    add_number(names, help, range, written(into),
               [&into](std::int64_t value) { into = static_cast<Number>(value); });
  }
  template <std::integral Number>
  void number(const std::string& names, std::optional<Number>& into, const std::string& help,
              Range<std::int64_t> range, const std::string& usual = "") {
    add_number(names, help, range, usual,
               [&into](std::int64_t value) { into = static_cast<Number>(value); });
  }
  void flag(const std::string& names, bool& into, std::string help);

  // Everything after the first "--", untouched; at least one word. Only for commands right below
  // the root. The second: if there is a "--". After "-- -name --", that is after the second one.
  void rest_after_dashes(const std::string& name, std::vector<std::string>& into, std::string help);
  void optional_rest_after_dashes(const std::string& name, std::vector<std::string>& into,
                                  std::string help);

  // What it may end with, besides what every command does; holds for those below it too. In place
  // of what every command means by that status, or after it.
  void ends_with(ExitStatus status, std::string meaning);
  void also_ends_with(ExitStatus status, std::string meaning);
  // It may find its store or its resource unavailable, or unfit.
  void uses_store();

  // The command that was chosen may end so.
  bool may_end_with(ExitStatus status) const;

  // A command below this one; one of them must then be chosen.
  Arguments& subcommand(const std::string& name, const std::string& summary);
  bool chosen() const;

 private:
  friend class CommandLine;
  struct State;
  explicit Arguments(std::shared_ptr<State> state) : state_(std::move(state)) {}
  const Arguments& deepest_chosen() const;
  void add_choice(const std::string& names, std::vector<std::string> words, std::string help,
                  std::function<void(std::size_t)> take);
  void add_duration(const std::string& names, const std::string& help, Range<Millis> range,
                    const std::string& usual, std::function<void(Millis)> take);
  void add_number(const std::string& names, const std::string& help, Range<std::int64_t> range,
                  const std::string& usual, std::function<void(std::int64_t)> take);
  std::shared_ptr<State> state_;
};

// The program's command line.
class CommandLine {
 public:
  CommandLine(const std::string& program, const std::string& description);
  ~CommandLine();

  Arguments& root();

  struct HelpWanted {
    CommandDoc of;
  };
  struct VersionWanted {};
  using Parsed = std::variant<std::monostate, HelpWanted, VersionWanted>;

  // Fills in the declared values. Fails with `invalid` and one sentence.
  [[nodiscard]] Result<Parsed> parse(const std::vector<std::string>& arguments);

  CommandDoc document() const { return document_of(*root_); }

  // Is `word`, as in "--version", an option of the program itself?
  bool has_option(const std::string& word) const;

 private:
  friend class Arguments;
  // Up to `end`; what comes behind the "--" there is the command's.
  Result<Parsed> parse_until(std::vector<std::string>::const_iterator end,
                             const std::vector<std::string>& arguments);
  static CommandDoc document_of(const Arguments& arguments);
  static bool any_uses_store(const Arguments& at);
  static std::map<ExitStatus, std::string> endings_of(const Arguments::State& state);
  static void add_endings_below(const Arguments& at, const std::string& path,
                                std::map<ExitStatus, std::string>& meanings);
  static std::string example_with_rest(const Arguments& at, const std::vector<std::string>& rest);
  static std::string hint(const Arguments& at, const std::vector<std::string>& words);
  static Error unexpected(const Arguments& at, const std::vector<std::string>& words);
  static Error missing(const Arguments& at, const std::vector<std::string>& words,
                       const std::string& what);
  Arguments* named_by(const std::vector<std::string>& arguments) const;
  std::unique_ptr<Arguments> root_;
  bool name_is_missing_ = false;  // in what was parsed last
};

}  // namespace leasehold::cli
