#include "cli/command/arguments.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <charconv>
#include <map>

#include "cli/command/duration.h"
#include "cli/command/meant_word.h"
#include "cli/command/output.h"
#include "leasehold/url.h"

namespace leasehold::cli {

struct Arguments::State {
  CLI::App* app = nullptr;
  std::unique_ptr<CLI::App> owned;  // only at the root
  std::string usage;
  std::string description;
  std::vector<ExampleDoc> examples;
  std::vector<std::string>* rest = nullptr;
  PositionalDoc rest_doc;
  bool rest_needed = false;
  const CLI::Option* shell_command = nullptr;
  std::map<const CLI::Option*, std::vector<std::string>> choices;
  std::vector<std::unique_ptr<Arguments>> children;

  CLI::Option* add(const std::string& names, const std::string& value, std::string help,
                   const std::function<void(const std::string&)>& take) {
    // Else an option whose value was forgotten would swallow the next one.
    const auto take_value = [names, take](const std::string& text) {
      if (text.starts_with("--")) {
        throw CLI::ValidationError(names.substr(0, names.find(',')),
                                   "the value is missing: '" + text + "' is an option");
      }
      take(text);
    };
    return app->add_option_function<std::string>(names, take_value, std::move(help))
        ->type_name(value);
  }
};

namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : std::string(between)) + word;
  return text;
}

std::function<void(const std::string&)> take_choice(std::string name,
                                                    std::vector<std::string> choices,
                                                    std::string& into) {
  return [name = std::move(name), choices = std::move(choices), &into](const std::string& text) {
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
      throw CLI::ValidationError(name,
                                 "'" + shown(text) + "' is not one of " + joined(choices, ", "));
    }
    into = text;
  };
}

std::string first_name(const std::string& names) {
  return names.substr(0, names.find(','));
}

struct Range {
  Millis least = Millis::min();
  Millis most = Millis::max();
};

// Of "from 100 ms to 24 h", so that what is said and what is checked cannot differ.
Range range_of(std::string limits) {
  if (limits.empty()) return {};
  std::erase(limits, ' ');
  const std::size_t least = std::string_view("from").size();
  const std::size_t to = limits.find("to");
  return {parse_duration(limits.substr(least, to - least)).value(),
          parse_duration(limits.substr(to + 2)).value()};
}

template <class Into>
std::function<void(const std::string&)> take_duration(const std::string& names, Into& into,
                                                      const std::string& limits) {
  return [name = first_name(names), &into, limits, range = range_of(limits)](const auto& text) {
    auto parsed = parse_duration(text);
    if (!parsed) {
      throw CLI::ValidationError(name, parse_duration(shown(text)).error().message +
                                           (limits.empty() ? "" : "; it must be " + limits));
    }
    if (*parsed < range.least || *parsed > range.most) {
      throw CLI::ValidationError(name, "'" + shown(text) + "' is not " + limits);
    }
    into = *parsed;
  };
}

template <class Into>
std::function<void(const std::string&)> take_number(const std::string& names, int least, int most,
                                                    Into& into) {
  return [name = first_name(names), least, most, &into](const std::string& text) {
    int value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end || value < least || value > most) {
      throw CLI::ValidationError(name, "'" + shown(text) + "' is not a whole number from " +
                                           std::to_string(least) + " to " + std::to_string(most));
    }
    into = value;
  };
}

const OptionDoc* find_option(const CommandDoc& command, const std::string& name) {
  for (const OptionDoc& option : command.options) {
    const auto& names = option.names;
    if (std::find(names.begin(), names.end(), name) != names.end()) return &option;
  }
  return nullptr;
}

bool has_positional(const CommandDoc& command, const std::string& name) {
  return std::any_of(command.positionals.begin(), command.positionals.end(),
                     [&](const PositionalDoc& one) { return one.name == name; });
}

Error wrong(const std::string& what, const CommandDoc& at) {
  return Error(ErrorCode::invalid, what + "; see '" + at.path + " --help'");
}

// An option that has too few values or too many, which CLI11 tells apart only by its words.
Error wrong_number(const CLI::ArgumentMismatch& error, const CommandDoc& at) {
  const std::string words = error.what();
  const std::string name = words.substr(0, words.find_first_of(": "));
  const OptionDoc* option = find_option(at, name);
  if (option == nullptr) return wrong("--" + name + " takes no value", at);  // it names a flag so
  if (words.find("At Most") != std::string::npos) return wrong(name + " was given twice", at);
  return wrong(name + " needs a value: " + name + " " + option->value, at);
}

std::string shown_line(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shown(word);
  return text;
}

// "--store" of "--store=URL"
std::string option_in(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word;
}

std::string no_such_option(const std::string& word) {
  return "there is no option '" + option_in(word) + "'";
}

Error did_you_mean(const std::string& what, const std::string& word) {
  return Error(ErrorCode::invalid, what + "; did you mean '" + word + "'?");
}

}  // namespace

void Arguments::usage(std::string text) {
  state_->usage = std::move(text);
}
void Arguments::description(std::string text) {
  state_->description = std::move(text);
}

void Arguments::example(std::string command, std::string what) {
  state_->examples.push_back({std::move(command), std::move(what)});
}

void Arguments::positional(const std::string& name, std::string& into, std::string help) {
  state_->app->add_option(name, into, std::move(help))->required()->type_name("");
}

void Arguments::positional_choice(const std::string& name, std::vector<std::string> choices,
                                  std::string& into, std::string help) {
  CLI::Option* option =
      state_->add(name, "", std::move(help), take_choice(name, choices, into))->required();
  state_->choices[option] = std::move(choices);
}

void Arguments::option(const std::string& names, const std::string& value,
                       std::optional<std::string>& into, std::string help) {
  state_->add(names, value, std::move(help), [&into](const std::string& text) { into = text; });
}

void Arguments::shell_command(const std::string& names, const std::string& value,
                              std::optional<std::string>& into, std::string help) {
  state_->shell_command =
      state_->add(names, value, std::move(help), [&into](const std::string& text) { into = text; });
}

void Arguments::required_option(const std::string& names, const std::string& value,
                                std::string& into, std::string help) {
  state_->add(names, value, std::move(help), [&into](const std::string& text) { into = text; })
      ->required();
}

void Arguments::choice(const std::string& names, std::vector<std::string> choices,
                       std::string& into, std::string help) {
  CLI::Option* option = state_->add(names, joined(choices, "|"), std::move(help),
                                    take_choice(first_name(names), choices, into));
  state_->choices[option] = std::move(choices);
}

void Arguments::duration(const std::string& names, Millis& into, std::string help,
                         std::string limits) {
  state_->add(names, "DURATION", std::move(help), take_duration(names, into, limits));
}

void Arguments::duration(const std::string& names, std::optional<Millis>& into, std::string help,
                         std::string limits) {
  state_->add(names, "DURATION", std::move(help), take_duration(names, into, limits));
}

void Arguments::number(const std::string& names, int least, int most, int& into, std::string help) {
  state_->add(names, "N", std::move(help), take_number(names, least, most, into));
}

void Arguments::number(const std::string& names, int least, int most, std::optional<int>& into,
                       std::string help) {
  state_->add(names, "N", std::move(help), take_number(names, least, most, into));
}

void Arguments::flag(const std::string& names, bool& into, std::string help) {
  state_->app->add_flag(names, into, std::move(help))->disable_flag_override();
}

void Arguments::rest_after_dashes(const std::string& name, std::vector<std::string>& into,
                                  std::string help) {
  state_->rest = &into;
  state_->rest_doc = {name, std::move(help), {}};
  state_->rest_needed = true;
}

void Arguments::optional_rest_after_dashes(const std::string& name, std::vector<std::string>& into,
                                           std::string help) {
  rest_after_dashes(name, into, std::move(help));
  state_->rest_needed = false;
}

Arguments& Arguments::subcommand(const std::string& name, const std::string& summary) {
  auto state = std::make_shared<State>();
  state->app = state_->app->add_subcommand(name, summary);
  state_->app->require_subcommand(1);
  state_->children.push_back(std::unique_ptr<Arguments>(new Arguments(std::move(state))));
  return *state_->children.back();
}

bool Arguments::chosen() const {
  return state_->app->parsed();
}

const Arguments& Arguments::deepest_chosen() const {
  for (const auto& child : state_->children) {
    if (child->chosen()) return child->deepest_chosen();
  }
  return *this;
}

CommandLine::CommandLine(const std::string& program, const std::string& description) {
  auto state = std::make_shared<Arguments::State>();
  state->owned = std::make_unique<CLI::App>(description, program);
  state->app = state->owned.get();
  state->app->set_help_flag("--help,-h", "Print this help")->disable_flag_override();
  state->app->set_version_flag("--version", program, "Print the version")->disable_flag_override();
  root_ = std::unique_ptr<Arguments>(new Arguments(std::move(state)));
}

CommandLine::~CommandLine() = default;

Arguments& CommandLine::root() {
  return *root_;
}

namespace {

std::string default_usage(const CommandDoc& doc) {
  std::string text;
  for (const PositionalDoc& positional : doc.positionals) text += positional.name + " ";
  if (!doc.children.empty()) text += "COMMAND ";
  for (const OptionDoc& option : doc.options) {
    if (option.required) text += option.names.front() + " " + option.value + " ";
  }
  return text + "[OPTIONS]";
}

OptionDoc describe(const CLI::Option& option, std::vector<std::string> choices) {
  OptionDoc doc;
  for (const std::string& name : option.get_lnames()) doc.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) doc.names.push_back("-" + name);
  if (option.get_items_expected_max() > 0) doc.value = option.get_type_name();
  doc.help = option.get_description();
  doc.choices = std::move(choices);
  doc.required = option.get_required();
  return doc;
}

}  // namespace

Error no_command(const CommandDoc& above, const std::string& word) {
  std::vector<std::string> names;
  for (const CommandDoc& child : above.children) names.push_back(child.name);
  const std::string what =
      word.empty() ? "a command is missing" : "'" + shown(word) + "' is not a command";
  if (const auto meant = meant_word(word, names)) return did_you_mean(what, *meant);
  return wrong(what + "; there are: " + joined(names, ", "), above);
}

Error no_option(const CommandDoc& at, const std::string& word) {
  std::vector<std::string> names;
  for (const OptionDoc& option : at.options) names.push_back(option.names.front());
  if (const auto meant = meant_word(option_in(word), names)) {
    return did_you_mean(no_such_option(word), *meant);
  }
  return wrong(no_such_option(word), at);
}

static std::string path_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : path_of(*parent) + " " + app.get_name();
}

// Walks the parser's own tree, so that nothing it accepts can be missing here.
static CommandDoc document_from(
    const CLI::App& app, const std::map<const CLI::Option*, std::vector<std::string>>& choices) {
  CommandDoc doc;
  doc.name = app.get_name();
  doc.path = path_of(app);
  doc.summary = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    const auto found = choices.find(option);
    auto named = found == choices.end() ? std::vector<std::string>() : found->second;
    if (option->get_positional()) {
      doc.positionals.push_back({option->get_single_name(), option->get_description(), named});
    } else {
      doc.options.push_back(describe(*option, named));
    }
  }
  return doc;
}

CommandDoc CommandLine::document_of(const Arguments& arguments) {
  const Arguments::State& state = *arguments.state_;
  CommandDoc doc = document_from(*state.app, state.choices);
  for (const auto& child : state.children) doc.children.push_back(document_of(*child));
  if (state.rest) doc.positionals.push_back(state.rest_doc);
  doc.description = state.description;
  doc.examples = state.examples;
  doc.usage = state.usage.empty() ? default_usage(doc) : state.usage;
  return doc;
}

// "leasehold run NAME -- echo hello"
std::string CommandLine::example_with_rest(const Arguments& at,
                                           const std::vector<std::string>& rest) {
  const CommandDoc doc = document_of(at);
  std::string text = doc.path;
  for (const PositionalDoc& each : doc.positionals) {
    if (each.name != at.state_->rest_doc.name) text += " " + each.name;
  }
  return text + " -- " + shown_line(rest);
}

// How to write what these words may have meant; empty: nobody knows.
std::string CommandLine::hint(const Arguments& at, const std::vector<std::string>& words) {
  const CommandDoc doc = document_of(at);
  const std::string& first = words.front();
  if (option_in(first) == "--store" && has_positional(doc, "URL")) {
    return "; the URL stands by itself, as in '" + doc.path + " URL'";
  }
  if (first.starts_with('-')) return "";
  if (Url::parse(first) && find_option(doc, "--store")) {
    return "; a store is named with an option: --store " + shown(first);
  }
  if (at.state_->shell_command) {
    std::vector<std::string> command = at.state_->shell_command->results();
    command.insert(command.end(), words.begin(), words.end());
    return "; a command of several words is one argument: " + at.state_->shell_command->get_name() +
           " '" + shown_line(command) + "'";
  }
  if (!at.state_->rest) return "";
  return "; the command comes after '--', as in '" + example_with_rest(at, words) + "'";
}

Error CommandLine::unexpected(const Arguments& at, const std::vector<std::string>& words) {
  const std::string& first = words.front();
  const bool option = first.starts_with('-');
  const std::string more = hint(at, words);
  const CommandDoc doc = document_of(at);
  if (option && more.empty()) return no_option(doc, first);
  return wrong((option ? no_such_option(first) : "'" + shown(first) + "' was not expected") + more,
               doc);
}

Error CommandLine::missing(const Arguments& at, const std::vector<std::string>& words,
                           const std::string& what) {
  if (!words.empty() && words.front().starts_with('-')) return unexpected(at, words);
  const CommandDoc doc = document_of(at);
  if (doc.children.empty()) return wrong(what, doc);
  return no_command(doc, words.empty() ? "" : words.front());
}

bool CommandLine::has_option(const std::string& word) const {
  return find_option(document(), option_in(word)) != nullptr;
}

Arguments* CommandLine::named_by(const std::vector<std::string>& arguments) const {
  for (const auto& child : root_->state_->children) {
    if (!arguments.empty() && child->state_->app->get_name() == arguments.front()) {
      return child.get();
    }
  }
  return nullptr;
}

Result<CommandLine::Parsed> CommandLine::parse(const std::vector<std::string>& arguments) {
  CLI::App* app = root_->state_->app;
  auto end = arguments.end();
  const Arguments* named = named_by(arguments);
  std::vector<std::string>* rest = named ? named->state_->rest : nullptr;
  if (rest) {
    end = std::find(arguments.begin(), arguments.end(), "--");
    if (end != arguments.end()) rest->assign(end + 1, arguments.end());
  }
  try {
    app->parse(std::vector<std::string>(std::reverse_iterator(end), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return Parsed(HelpWanted{document_of(root_->deepest_chosen())});
  } catch (const CLI::CallForVersion&) {
    return Parsed(VersionWanted{});
  } catch (const CLI::ExtrasError&) {
    return fail(unexpected(root_->deepest_chosen(), app->remaining(true)));
  } catch (const CLI::RequiredError& error) {
    return fail(missing(root_->deepest_chosen(), app->remaining(true), error.what()));
  } catch (const CLI::ArgumentMismatch& error) {
    return fail(wrong_number(error, document_of(root_->deepest_chosen())));
  } catch (const CLI::ParseError& error) {
    return fail(wrong(error.what(), document_of(root_->deepest_chosen())));
  }
  const bool dashes = end != arguments.end();
  if (rest && rest->empty() && (named->state_->rest_needed || dashes)) {
    return fail(ErrorCode::invalid, "the command is missing: write it after '--', as in '" +
                                        example_with_rest(*named, {"echo", "hello"}) + "'");
  }
  return Parsed(std::monostate{});
}

}  // namespace leasehold::cli
