#include "scan.h"

#include "kit/try.h"
#include "leasehold/resp/command.h"

namespace leasehold::redis {
namespace {

// A pattern for SCAN that means these very bytes.
std::string literally(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view("*?[]\\^-").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace

Status scan_keys(Server& server, std::string_view begins, const CallContext& context,
                 const std::function<Status(std::vector<std::string>)>& found) {
  std::string cursor = "0";
  do {
    std::string command;
    resp::append_command(command,
                         {"SCAN", cursor, "MATCH", literally(begins) + "*", "COUNT", "1000"});
    const auto page = TRY(server.run(command, context));
    cursor = page.at(0).text;
    std::vector<std::string> keys;
    for (const resp::Value& key : page.at(1).items) {
      if (key.text.starts_with(begins)) keys.push_back(key.text);
    }
    TRY(found(std::move(keys)));
  } while (cursor != "0" && !cursor.empty());
  return {};
}

Result<std::set<std::string>> find_keys(Server& server, std::string_view begins,
                                        const CallContext& context) {
  std::set<std::string> all;
  TRY(scan_keys(server, begins, context, [&](std::vector<std::string> keys) -> Status {
    all.insert(keys.begin(), keys.end());
    return {};
  }));
  return all;
}

}  // namespace leasehold::redis
