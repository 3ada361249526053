// Small texts of the gate: paths and the pattern of resources, percent signs, JSON, addresses.
//
// Rules: what is decoded can be encoded again; JSON is JSON whatever is in it; a path that names a
// resource names the same one when it is written plainly; an address reads the same again.
#include <string>

#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "gate/src/listener.h"
#include "gate/src/resource_pattern.h"
#include "gate/src/text.h"
#include "gate/src/upstream.h"

namespace leasehold::fuzz {
namespace {

using namespace gate;

void check_percent(std::string_view text) {
  const std::string encoded = percent_encoded(text);
  must(is_printable(encoded) && encoded.find_first_of(" /?#") == std::string::npos,
       "an encoded text is one word");
  must(percent_decoded(encoded) == text, "a text is decoded as it was encoded");
  if (const auto decoded = percent_decoded(text)) {
    must(decoded->size() <= text.size(), "decoding makes nothing longer");
  }
}

void check_json(std::string_view text) {
  const auto json = nlohmann::json::parse(json_string(text), nullptr, false);
  must(json.is_string(), "a JSON string is one whatever is in it");
  if (nlohmann::json::accept(json_string(text)) && text.find('\xef') == std::string_view::npos &&
      json.get<std::string>().find("\xef\xbf\xbd") == std::string::npos) {
    must(json.get<std::string>() == text, "a JSON string says what it was given");
  }
}

void check_decimal(std::string_view text) {
  const auto number = kit::digits_in<std::int64_t>(text);
  if (!number) return;
  must(*number >= 0, "a number has no sign");
  must(kit::digits_in<std::int64_t>(std::to_string(*number)) == number,
       "a number is read as it was written");
}

void check_path(const ResourcePattern& pattern, std::string_view target) {
  for (const EncodedSlash slashes : {EncodedSlash::refused, EncodedSlash::part_of_the_name}) {
    const auto resource = pattern.find(target, slashes);
    if (!resource) continue;
    must(check_target(target, slashes).has_value(), "a path that names a resource is a good one");
    const auto segment = "/accounts/" + percent_encoded(resource->str());
    const auto again = pattern.find(segment, EncodedSlash::part_of_the_name);
    const bool dots = resource->str().starts_with('.');
    const bool parameters = resource->str().find(';') != std::string::npos;
    must(dots || parameters || (again && *again == *resource), "a resource has one name");
    must(slashes == EncodedSlash::part_of_the_name ||
             resource->str().find_first_of("/\\") == std::string::npos,
         "a resource is one segment");
  }
}

void check_pattern(std::string_view text) {
  std::string_view target = text;
  const auto pattern = ResourcePattern::parse(take_until(target, '\n'));
  if (!pattern) return;
  (void)pattern->find(target, EncodedSlash::refused);
  (void)pattern->find(target, EncodedSlash::part_of_the_name);
}

void check_upstream(const std::string& text) {
  const auto address = UpstreamAddress::parse(text);
  if (!address) return;
  must(is_printable(address->str()), "an address is printed on one line");
  const bool v6 = address->host.find(':') != std::string::npos;
  const std::string host = v6 ? "[" + address->host + "]" : address->host;
  const auto again = UpstreamAddress::parse("http://" + host + ":" + address->port);
  must(again && again->host == address->host && again->port == address->port,
       "an upstream is read as it was written");
  const std::size_t at = text.find(address->host, 7);
  must(at != std::string::npos, "a host is a part of its URL");
  std::string_view rest = std::string_view(text).substr(at + address->host.size());
  if (rest.starts_with(']')) rest.remove_prefix(1);
  must(rest.empty() || rest == "/" || rest.starts_with(':'), "nothing stands behind the host");
}

void check_endpoint(const std::string& text) {
  const auto endpoint = parse_endpoint(text);
  if (!endpoint) return;
  const auto again = parse_endpoint(gate::text_of(*endpoint));
  must(again && *again == *endpoint, "an address to listen on is read as it was written");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leasehold::fuzz;
  static const ResourcePattern accounts = ResourcePattern::parse("/accounts/{resource}").value();
  const std::string_view text = leasehold::fuzz::text_of(data, size);
  check_percent(text);
  check_json(text);
  check_decimal(text);
  check_path(accounts, text);
  check_path(accounts, "/accounts/" + std::string(text));
  check_pattern(text);
  check_upstream(std::string(text));
  check_upstream("http://" + std::string(text));
  check_endpoint(std::string(text));
  return 0;
}
