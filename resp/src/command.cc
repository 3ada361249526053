#include "leasehold/resp/command.h"

#include <array>
#include <charconv>

namespace leasehold::resp {
namespace {

using Digits = std::array<char, 24>;

std::string_view decimal(std::int64_t number, Digits& digits) {
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), static_cast<std::size_t>(end - digits.data())};
}

void append_header(std::string& out, char mark, std::size_t number) {
  Digits digits;
  out += mark;
  out += decimal(static_cast<std::int64_t>(number), digits);
  out += "\r\n";
}

}  // namespace

CommandWriter::CommandWriter(std::string& out, std::size_t count) : out_(out) {
  append_header(out_, '*', count);
}

CommandWriter& CommandWriter::arg(std::string_view text) {
  append_header(out_, '$', text.size());
  out_ += text;
  out_ += "\r\n";
  return *this;
}

CommandWriter& CommandWriter::arg(std::int64_t number) {
  Digits digits;
  return arg(decimal(number, digits));
}

void append_command(std::string& out, std::initializer_list<std::string_view> arguments) {
  CommandWriter writer(out, arguments.size());
  for (const std::string_view argument : arguments) writer.arg(argument);
}

}  // namespace leasehold::resp
