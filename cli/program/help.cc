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
  text += "\nExit status:\n";
  for (const ExitStatusDoc& one : command.exit_statuses) {
    text += entry(one.status, one.meaning);
  }
  return text;
}

}  // namespace leasehold::cli
