// The manual page, from the same tree as --help.
#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/subcommand.h"
#include "cli/program/program.h"
#include "leasehold/registry.h"
#include "leasehold/stores.h"

namespace leasehold::cli {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else if (letter == '\'') {
      out += "\\(aq";
    } else if (letter == '.' && (out.empty() || out.ends_with('\n'))) {
      out += "\\&.";
    } else {
      out += letter;
    }
  }
  return out;
}

std::string bold(std::string_view text) {
  return "\\fB" + escaped(text) + "\\fR";
}

std::string tagged(const std::string& head, std::string_view text) {
  return ".TP\n" + head + "\n" + escaped(text) + "\n";
}

std::string bold_head(const OptionDoc& option) {
  std::string head;
  for (const std::string& name : option.names) head += (head.empty() ? "" : ", ") + bold(name);
  return option.value.empty() ? head : head + " \\fI" + escaped(option.value) + "\\fR";
}

std::string examples(const CommandDoc& command) {
  std::string text;
  for (const ExampleDoc& example : command.examples) {
    text += ".PP\n" + escaped(example.what) + ":\n.PP\n.RS 4\n.nf\n" + escaped(example.command) +
            "\n.fi\n.RE\n";
  }
  return text;
}

std::string section(const CommandDoc& command) {
  std::string text = ".SS " + escaped(command.path) + " " + escaped(command.usage) + "\n" +
                     escaped(command.summary) + ".\n";
  if (!command.description.empty()) text += ".PP\n" + escaped(command.description) + "\n";
  for (const PositionalDoc& one : command.positionals) text += tagged(bold(one.name), one.help);
  for (const OptionDoc& option : command.options) text += tagged(bold_head(option), option.help);
  text += examples(command);
  for (const CommandDoc& child : command.children) text += section(child);
  return text;
}

std::string section(const Technology& technology) {
  std::string text;
  for (const Scheme& scheme : technology.schemes) {
    text += ".SS " + escaped(technology.title) + ": " + escaped(scheme.name) + "\n";
    for (const Use& use : scheme.uses) text += tagged(bold(use.example), "as a " + use.what);
    for (const UrlOption& option : scheme.all_options()) {
      text += tagged(bold("?" + option.name + "="), option.help);
    }
  }
  return text;
}

std::string page(const CommandDoc& root) {
  std::string text = ".TH LEASEHOLD 1 \"\" \"leasehold " LEASEHOLD_VERSION
                     "\" \"User Commands\"\n"
                     ".SH NAME\nleasehold \\- " +
                     escaped(root.summary) + "\n.SH SYNOPSIS\n";
  for (const CommandDoc& command : root.children) {
    text += bold(command.path) + " " + escaped(command.usage) + "\n.br\n";
  }
  text += ".SH DESCRIPTION\n" + escaped(root.description) + "\n.SH OPTIONS\n";
  for (const OptionDoc& option : root.options) text += tagged(bold_head(option), option.help);
  text += ".SH COMMANDS\n";
  for (const CommandDoc& command : root.children) text += section(command);
  text += ".SH URLS\n" +
          escaped(
              "Several options are joined by '&'. Every URL takes ?password_file=PATH or "
              "?password_env=NAME, which keeps a password out of it.") +
          "\n";
  register_stores();
  for (const Technology& it : Registry::standard().technologies()) text += section(it);
  text += ".SH EXIT STATUS\n";
  for (const ExitStatusDoc& one : root.exit_statuses) {
    text += tagged(bold(one.status), one.meaning);
  }
  text += ".SH ENVIRONMENT\n";
  text += tagged(bold("LEASEHOLD_STORE"), "The store to use if there is no --store.");
  text += tagged(bold("NO_COLOR"), "If set, no colours.");
  text += tagged(bold("XDG_STATE_HOME"),
                 "Where the default store is: leasehold/locks.db in it, or in ~/.local/state.");
  return text + ".SH EXAMPLES\n" + examples(root);
}

class Man final : public Subcommand {
 public:
  void declare(Arguments&) override {}
  Ending execute() override { return print(page(document_program())); }
};

}  // namespace

SubcommandEntry man_command() {
  return {"man", "Print the manual page", make<Man>, true};
}

}  // namespace leasehold::cli
