#include "cli/command/once_run.h"

#include "kit/text/number.h"

namespace leasehold::cli {
namespace {

// "4:true," for each word: two different command lines never give the same.
std::string as_parameters(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += std::to_string(word.size()) + ":" + word + ",";
  return text;
}

std::optional<std::vector<std::string>> command_in(std::string_view text) {
  std::vector<std::string> command;
  while (!text.empty()) {
    const auto length = kit::take_number<std::size_t>(text);
    if (!length || !text.starts_with(':') || text.size() - 1 <= *length) return std::nullopt;
    if (text[1 + *length] != ',') return std::nullopt;
    command.emplace_back(text.substr(1, *length));
    text.remove_prefix(*length + 2);
  }
  if (command.empty()) return std::nullopt;
  return command;
}

}  // namespace

OnceRecord record_of(const OnceRun& run) {
  return {as_parameters(run.command), std::to_string(run.status)};
}

std::optional<OnceRun> run_in(const OnceRecord& record) {
  auto command = command_in(record.parameters);
  const auto status = kit::digits_in<int>(record.result);
  if (!command || !status || *status > 255) return std::nullopt;
  return OnceRun{std::move(*command), *status};
}

}  // namespace leasehold::cli
