// Words that people and scripts give: names, tokens, lineages, request ids, durations, paths.
//
// Rules: what is accepted is within its limits, and reads the same when it is written out again.
#include <chrono>
#include <climits>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "adapters/files/src/place.h"
#include "cli/command/duration.h"
#include "fuzz/fuzz.h"
#include "leasehold/token.h"

namespace leasehold::fuzz {
namespace {

// Another reader's opinion.
bool is_utf8(std::string_view text) {
  try {
    return !nlohmann::json(text).dump().empty();
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

void check_name(std::string_view text) {
  const auto name = LockName::parse(text);
  if (!name) return must(is_printable(name.error().message), "a refusal is one line");
  must(name->str() == text, "a name stays as it is");
  must(!text.empty() && text.size() <= kMaxNameBytes, "a name has 1 to 512 bytes");
  must(is_printable(text) && is_utf8(text), "a name is readable text");
}

void check_number(std::string_view text) {
  const auto number = TokenNumber::parse(text);
  if (!number) return;
  must(text.find_first_not_of("0123456789") == std::string_view::npos, "a token is of digits");
  must(number->value() >= 1, "a token is positive");
  const auto again = TokenNumber::parse(std::to_string(number->value()));
  must(again && *again == *number, "a token is read as it was written");
}

void check_token(std::string_view text) {
  const std::string_view number = take_until(text, '\n');
  const std::string_view lineage = take_until(text, '\n');
  const auto token = Token::parse(number, lineage, text);
  if (!token) return must(!token.error().message.empty(), "a refusal says why");
  const auto again = Token::parse(std::to_string(token->number.value()), token->lineage.str(),
                                  token->request.hex());
  must(again && *again == *token, "a token is read as it was written");
}

void check_duration(std::string_view text) {
  const auto span = cli::parse_duration(text);
  if (!span) return;
  must(*span >= Millis(0) && *span <= std::chrono::hours(8784), "a duration is at most a year");
  const auto again = cli::parse_duration(std::to_string(span->count()) + "ms");
  must(again && *again == *span, "a duration is read as it was written");
  must(!cli::format_duration(*span).empty(), "a duration can be shown");
}

void check_place(std::string_view text) {
  const auto place = files::Place::parse(std::filesystem::path(text));
  if (!place) return;
  must(place->path.is_absolute() && place->path.native().size() < PATH_MAX, "a path is usable");
  must(place->name.str().find('/') == std::string::npos, "a resource is one part of a path");
  must(place->vault().parent_path().parent_path() == place->folder,
       "a vault is two below the folder");
  const auto again = files::Place::parse(place->path);
  must(again && again->path == place->path && again->name == place->name, "a place stays the same");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leasehold::fuzz;
  const std::string_view text = text_of(data, size);
  check_name(text);
  check_number(text);
  check_token(text);
  check_duration(text);
  check_place(text);
  return 0;
}
