#include "cli/program/help.h"

#include "cli/command/text.h"

namespace leasehold::cli {
namespace {

constexpr std::size_t kColumn = 26;

std::string entry(const std::string& head, std::string_view text) {
  std::string line = "  " + head;
  if (line.size() + 2 > kColumn) {
    line += "\n" + std::string(kColumn, ' ');
  } else {
    line.resize(kColumn, ' ');
  }
  return line + wrapped(text, kColumn) + "\n";
}

std::string head_of(const OptionDoc& option) {
  std::string head;
  for (const std::string& name : option.names) head += (head.empty() ? "" : ", ") + name;
  return option.value.empty() ? head : head + " " + option.value;
}

bool is_program(const CommandDoc& command) {
  return command.path == command.name;
}

std::string statuses_in_full(const CommandDoc& command) {
  std::string text;
  for (const ExitStatusDoc& one : command.exit_statuses) text += entry(one.status, one.meaning);
  return text;
}

// What several commands mean by it; their own help has the rest.
std::string statuses_in_short(const CommandDoc& program) {
  std::string text;
  std::string others;
  for (const ExitStatusDoc& one : program.exit_statuses) {
    if (!one.in_short.empty()) {
      text += entry(one.status, one.in_short);
    } else {
      others += (others.empty() ? "" : ", ") + one.status;
    }
  }
  return others.empty() ? text : text + entry(others, "of single commands: see their --help");
}

}  // namespace

std::string render_help(const CommandDoc& command) {
  std::string text = command.summary + ".\n\nUsage: " + command.path + " " + command.usage + "\n";
  if (!command.description.empty()) text += "\n" + wrapped(command.description, 0) + "\n";
  if (!command.children.empty()) text += "\nCommands:\n";
  for (const CommandDoc& child : command.children) text += entry(child.name, child.summary);
  if (!command.positionals.empty()) text += "\nArguments:\n";
  for (const PositionalDoc& one : command.positionals) text += entry(one.name, one.help);
  if (!command.options.empty()) text += "\nOptions:\n";
  for (const OptionDoc& option : command.options) text += entry(head_of(option), option.help);
  if (!command.examples.empty()) text += "\nExamples:\n";
  for (const ExampleDoc& example : command.examples) {
    text += "  # " + example.what + "\n  " + example.command + "\n";
  }
  return text + "\nExit status:\n" +
         (is_program(command) ? statuses_in_short(command) : statuses_in_full(command));
}

}  // namespace leasehold::cli
