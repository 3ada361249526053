// Answers for programs. The names and types of the fields are part of the program's interface.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "kit/text/visible_text.h"

namespace leasehold::cli {

using Json = nlohmann::ordered_json;

// As lines. What is not UTF-8, as a label that another program wrote may be, is replaced.
inline std::string json_text(const Json& json) {
  return kit::json_shown(json.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

// The same on one line.
inline std::string json_line(const Json& json) {
  return kit::json_shown(json.dump(-1, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace leasehold::cli
