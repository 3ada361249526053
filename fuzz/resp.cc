// RESP2 and RESP3 from a server.
//
// Rules: the portions in which bytes come make no difference. No value is larger, deeper or of more
// items than the limits. A value reads the same when it is written out again, and as a command.
#include <cmath>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "fuzz/resp_value.h"
#include "leasehold/resp/command.h"
#include "leasehold/resp/parser.h"

namespace leasehold::fuzz {
namespace {

using resp::Parser;
using resp::Value;

constexpr Parser::Limits kLimits{.nesting = 4, .items = 64, .bytes = 2048};

bool same(const Value& a, const Value& b) {
  if (a.type != b.type || a.text != b.text || a.integer != b.integer) return false;
  if (std::isnan(a.real) != std::isnan(b.real)) return false;
  if (!std::isnan(a.real) && a.real != b.real) return false;
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same);
}

struct Size {
  std::size_t bytes = 0;
  std::size_t items = 0;
  std::size_t depth = 0;
};

void measure(const Value& value, std::size_t depth, Size& size) {
  size.bytes += value.text.size();
  size.items += value.items.size();
  size.depth = std::max(size.depth, depth + (value.items.empty() ? 0 : 1));
  for (const Value& item : value.items) measure(item, depth + 1, size);
}

void check_limits(const Value& value) {
  Size size;
  measure(value, 0, size);
  must(size.bytes <= kLimits.bytes, "a value has no more bytes than allowed");
  must(size.items <= kLimits.items, "a value has no more items than allowed");
  must(size.depth <= kLimits.nesting, "a value is no deeper than allowed");
}

struct Outcome {
  std::vector<Value> values;
  Parser::Step end = Parser::Step::more;
};

Outcome parse(std::string_view bytes, std::size_t portion, Parser::Limits limits = kLimits) {
  Parser parser(limits);
  Outcome outcome;
  while (!bytes.empty() && outcome.end == Parser::Step::more) {
    const std::string_view some = bytes.substr(0, portion);
    bytes.remove_prefix(some.size());
    parser.feed(some);
    Value value;
    while ((outcome.end = parser.next(value)) == Parser::Step::value) {
      outcome.values.push_back(std::move(value));
    }
  }
  must((outcome.end == Parser::Step::malformed) == !parser.problem().empty(),
       "what is malformed is explained, and nothing else");
  must(is_printable(parser.begins()), "the beginning is shown on one line");
  return outcome;
}

void check_written(const Value& value) {
  const Outcome again = parse(written(value), SIZE_MAX, Parser::Limits{});
  must(again.values.size() == 1 && same(again.values[0], value),
       "a value is read as it was written");
}

void check_command(const Value& value) {
  std::string bytes;
  resp::CommandWriter writer(bytes, value.items.size());
  for (const Value& item : value.items) writer.arg(item.text);
  const Outcome again = parse(bytes, SIZE_MAX, Parser::Limits{});
  must(again.values.size() == 1 && again.values[0].items.size() == value.items.size(),
       "a command is read as it was written");
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    must(again.values[0].items[i].text == value.items[i].text, "an argument may have any bytes");
  }
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leasehold::fuzz;
  const std::string_view bytes = text_of(data, size);
  const Outcome whole = parse(bytes, SIZE_MAX);
  for (const std::size_t portion : {std::size_t{1}, std::size_t{7}}) {
    const Outcome parts = parse(bytes, portion);
    must(parts.end == whole.end && std::equal(parts.values.begin(), parts.values.end(),
                                              whole.values.begin(), whole.values.end(), same),
         "portions make no difference");
  }
  for (const Value& value : whole.values) {
    check_limits(value);
    check_written(value);
    check_command(value);
  }
  return 0;
}
