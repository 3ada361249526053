#include "cli/command/arguments.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <map>

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
  struct Ends {
    ExitStatus status;
    std::string meaning;
    bool besides_usual = false;
  };
  std::vector<Ends> ends;
  bool uses_store = false;
  const State* above = nullptr;
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
                                                    std::function<void(std::size_t)> take) {
  return [name = std::move(name), choices = std::move(choices),
          take = std::move(take)](const std::string& text) {
    const auto found = std::find(choices.begin(), choices.end(), text);
    if (found == choices.end()) {
      throw CLI::ValidationError(name,
                                 "'" + shown(text) + "' is not one of " + joined(choices, ", "));
    }
    take(static_cast<std::size_t>(found - choices.begin()));
  };
}

std::string first_name(const std::string& names) {
  return names.substr(0, names.find(','));
}

// Takes what `parse` makes of the text.
template <class Parse, class Take>
std::function<void(const std::string&)> take_parsed(const std::string& names, Parse parse,
                                                    Take take) {
  return [name = first_name(names), parse, take](const std::string& text) {
    const auto parsed = parse(text);
    if (!parsed) throw CLI::ValidationError(name, parsed.error().message);
    take(*parsed);
  };
}

// "How long to wait (100ms to 24h, default 30s)"
std::string with_range(const std::string& help, const std::string& range,
                       const std::string& usual) {
  const bool phrase = usual.find(' ') != std::string::npos;
  std::vector<std::string> more;
  if (!range.empty()) more.push_back(range);
  if (!usual.empty()) more.push_back((phrase ? "default: " : "default ") + usual);
  return more.empty() ? help : help + " (" + joined(more, ", ") + ")";
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

void Arguments::positional(const std::string& name, std::string& into, std::string help,
                           std::vector<std::string> suggestions) {
  const CLI::Option* option =
      state_->app->add_option(name, into, std::move(help))->required()->type_name("");
  state_->choices[option] = std::move(suggestions);
}

void Arguments::optional_positional(const std::string& name, std::optional<std::string>& into,
                                    std::string help) {
  state_->app
      ->add_option_function<std::string>(
          name, [&into](const std::string& text) { into = text; }, std::move(help))
      ->type_name("");
}

void Arguments::positional_choice(const std::string& name, std::vector<std::string> choices,
                                  std::string& into, std::string help) {
  const auto take = [choices, &into](std::size_t index) { into = choices[index]; };
  CLI::Option* option =
      state_->add(name, "", std::move(help), take_choice(name, choices, take))->required();
  state_->choices[option] = std::move(choices);
}

void Arguments::option(const std::string& names, const std::string& value,
                       std::optional<std::string>& into, std::string help,
                       std::vector<std::string> suggestions) {
  const CLI::Option* option =
      state_->add(names, value, std::move(help), [&into](const std::string& text) { into = text; });
  state_->choices[option] = std::move(suggestions);
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

void Arguments::add_choice(const std::string& names, std::vector<std::string> words,
                           std::string help, std::function<void(std::size_t)> take) {
  CLI::Option* option = state_->add(names, joined(words, "|"), std::move(help),
                                    take_choice(first_name(names), words, std::move(take)));
  state_->choices[option] = std::move(words);
}

void Arguments::choice(const std::string& names, std::vector<std::string> choices,
                       std::string& into, std::string help) {
  add_choice(names, choices, std::move(help),
             [choices, &into](std::size_t index) { into = choices[index]; });
}

void Arguments::add_duration(const std::string& names, const std::string& help, Range<Millis> range,
                             const std::string& usual, std::function<void(Millis)> take) {
  const auto parse = [range](const std::string& text) { return parse_duration(text, range); };
  state_->add(names, "DURATION", with_range(help, words_of(range, kAnyDuration), usual),
              take_parsed(names, parse, std::move(take)));
}

void Arguments::duration(const std::string& names, Millis& into, const std::string& help,
                         Range<Millis> range) {
  add_duration(names, help, range, written(into), [&into](Millis span) { into = span; });
}

void Arguments::duration(const std::string& names, std::optional<Millis>& into,
                         const std::string& help, Range<Millis> range, const std::string& usual) {
  add_duration(names, help, range, usual, [&into](Millis span) { into = span; });
}

void Arguments::add_number(const std::string& names, const std::string& help,
                           Range<std::int64_t> range, const std::string& usual,
                           std::function<void(std::int64_t)> take) {
  const auto parse = [range](const std::string& text) { return parse_number(text, range); };
  state_->add(names, "N", with_range(help, words_of(range, kAnyNumber), usual),
              take_parsed(names, parse, std::move(take)));
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

void Arguments::ends_with(ExitStatus status, std::string meaning) {
  state_->ends.push_back({status, std::move(meaning)});
}

void Arguments::also_ends_with(ExitStatus status, std::string meaning) {
  state_->ends.push_back({status, std::move(meaning), /*besides_usual=*/true});
}

void Arguments::uses_store() {
  state_->uses_store = true;
}

Arguments& Arguments::subcommand(const std::string& name, const std::string& summary) {
  auto state = std::make_shared<State>();
  state->app = state_->app->add_subcommand(name, summary);
  state->above = state_.get();
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
  for (const PositionalDoc& each : doc.positionals) {
    text += each.required ? each.name + " " : "[" + each.name + "] ";
  }
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
  const bool may_be_a_name = has_positional(at, "NAME");
  return wrong(no_such_option(word) + (may_be_a_name ? "; a name that begins with a dash stands "
                                                       "after '--'"
                                                     : ""),
               at);
}

namespace {

using Meanings = std::map<ExitStatus, std::string>;

constexpr std::pair<ExitStatus, std::string_view> kUsual[] = {
    {ExitStatus::done, "done"},
    {ExitStatus::wrong_input, "wrong input: a flag, name, URL or duration"},
    {ExitStatus::internal,
     "a bug in leasehold, or the system ran out of files, processes or memory"},
    {ExitStatus::outcome_unknown,
     "outcome unknown: it may or may not have been done; or the output could not be written"},
};
constexpr std::pair<ExitStatus, std::string_view> kOfStores[] = {
    {ExitStatus::unavailable, "the store or the resource is not available"},
    {ExitStatus::unfit, "this store cannot do that, or not safely; or an unknown kind of store"},
};

void add(Meanings& meanings, ExitStatus status, const std::string& text) {
  std::string& meaning = meanings[status];
  meaning += (meaning.empty() ? "" : "; ") + text;
}

Meanings usual(bool with_store) {
  Meanings meanings(std::begin(kUsual), std::end(kUsual));
  if (with_store) meanings.insert(std::begin(kOfStores), std::end(kOfStores));
  return meanings;
}

std::string path_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : path_of(*parent) + " " + app.get_name();
}

// Walks the parser's own tree, so that nothing it accepts can be missing here.
CommandDoc document_from(const CLI::App& app,
                         const std::map<const CLI::Option*, std::vector<std::string>>& choices) {
  CommandDoc doc;
  doc.name = app.get_name();
  doc.path = path_of(app);
  doc.summary = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    const auto found = choices.find(option);
    auto named = found == choices.end() ? std::vector<std::string>() : found->second;
    if (option->get_positional()) {
      doc.positionals.push_back(
          {option->get_single_name(), option->get_description(), named, option->get_required()});
    } else {
      doc.options.push_back(describe(*option, named));
    }
  }
  return doc;
}

}  // namespace

bool CommandLine::any_uses_store(const Arguments& at) {
  const auto& children = at.state_->children;
  return at.state_->uses_store || std::any_of(children.begin(), children.end(),
                                              [](const auto& it) { return any_uses_store(*it); });
}

// Of a command: what holds for it and for those above it.
std::map<ExitStatus, std::string> CommandLine::endings_of(const Arguments::State& state) {
  if (state.above == nullptr) return usual(/*with_store=*/false);
  Meanings meanings = endings_of(*state.above);
  if (state.uses_store) meanings.insert(std::begin(kOfStores), std::end(kOfStores));
  for (const auto& one : state.ends) {
    if (!one.besides_usual) meanings.erase(one.status);
    add(meanings, one.status, one.meaning);
  }
  return meanings;
}

// What its commands tell, each with its name.
void CommandLine::add_endings_below(const Arguments& at, const std::string& path,
                                    std::map<ExitStatus, std::string>& meanings) {
  for (const auto& child : at.state_->children) {
    const std::string name = (path.empty() ? "" : path + " ") + child->state_->app->get_name();
    for (const auto& one : child->state_->ends) {
      add(meanings, one.status, name + ": " + one.meaning);
    }
    add_endings_below(*child, name, meanings);
  }
}

bool Arguments::may_end_with(ExitStatus status) const {
  return CommandLine::endings_of(*deepest_chosen().state_).contains(status);
}

CommandDoc CommandLine::document_of(const Arguments& arguments) {
  const Arguments::State& state = *arguments.state_;
  CommandDoc doc = document_from(*state.app, state.choices);
  for (const auto& child : state.children) doc.children.push_back(document_of(*child));
  if (state.rest) doc.positionals.push_back(state.rest_doc);
  doc.description = state.description;
  doc.examples = state.examples;
  doc.usage = state.usage.empty() ? default_usage(doc) : state.usage;
  Meanings meanings = endings_of(state);
  if (state.above == nullptr) {
    meanings = usual(any_uses_store(arguments));
    add_endings_below(arguments, "", meanings);
  }
  for (const auto& [status, meaning] : meanings) {
    doc.exit_statuses.push_back({label(status), meaning, std::string(in_short(status))});
  }
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
  if (!at.state_->rest->empty()) return "; a name with spaces is one argument, in quotes";
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
  const std::vector<std::string>* rest = at.state_->rest;
  if (rest && !rest->empty() && rest->front().starts_with('-') && rest->front() != "--") {
    return wrong(what + "; a name that begins with a dash stands between two '--', as in '" +
                     doc.path + " -- " + shown(rest->front()) + " -- echo hello'",
                 doc);
  }
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
  const Arguments* named = named_by(arguments);
  if (named == nullptr || named->state_->rest == nullptr) {
    return parse_until(arguments.end(), arguments);
  }
  // The "--" before the command. The name may have one of its own before it, as any name may.
  auto end = std::find(arguments.begin(), arguments.end(), "--");
  auto parsed = parse_until(end, arguments);
  const bool after_dashes = arguments.end() - end > 2 && end[2] == "--";
  if (!parsed && after_dashes && name_is_missing_) parsed = parse_until(end += 2, arguments);
  if (!parsed) return parsed;
  const std::vector<std::string>& rest = *named->state_->rest;
  const bool dashes = end != arguments.end();
  if (rest.empty() && (named->state_->rest_needed || dashes) &&
      std::holds_alternative<std::monostate>(*parsed)) {
    return fail(ErrorCode::invalid, "the command is missing: write it after '--', as in '" +
                                        example_with_rest(*named, {"echo", "hello"}) + "'");
  }
  return parsed;
}

Result<CommandLine::Parsed> CommandLine::parse_until(std::vector<std::string>::const_iterator end,
                                                     const std::vector<std::string>& arguments) {
  CLI::App* app = root_->state_->app;
  const Arguments* named = named_by(arguments);
  if (named && named->state_->rest && end != arguments.end()) {
    named->state_->rest->assign(end + 1, arguments.end());
  }
  name_is_missing_ = false;
  try {
    app->parse(std::vector<std::string>(std::reverse_iterator(end), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return Parsed(HelpWanted{document_of(root_->deepest_chosen())});
  } catch (const CLI::CallForVersion&) {
    return Parsed(VersionWanted{});
  } catch (const CLI::ExtrasError&) {
    return fail(unexpected(root_->deepest_chosen(), app->remaining(true)));
  } catch (const CLI::RequiredError& error) {
    name_is_missing_ = true;
    return fail(missing(root_->deepest_chosen(), app->remaining(true), error.what()));
  } catch (const CLI::ArgumentMismatch& error) {
    return fail(wrong_number(error, document_of(root_->deepest_chosen())));
  } catch (const CLI::ParseError& error) {
    return fail(wrong(error.what(), document_of(root_->deepest_chosen())));
  }
  return Parsed(std::monostate{});
}

}  // namespace leasehold::cli
