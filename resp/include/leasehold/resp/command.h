// Commands as a client sends them: arrays of bulk strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace leasehold::resp {

// Appends one command to `out`; exactly `count` arguments must follow. Any bytes may be in them.
class CommandWriter {
 public:
  CommandWriter(std::string& out, std::size_t count);

  CommandWriter& arg(std::string_view text);
  CommandWriter& arg(std::int64_t number);

 private:
  std::string& out_;
};

void append_command(std::string& out, std::initializer_list<std::string_view> arguments);

}  // namespace leasehold::resp
