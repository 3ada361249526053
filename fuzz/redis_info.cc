// What a Redis server says of itself: INFO, and the reply to TIME in front of it.
//
// Rules: no field has a line break, no time is negative, no memory is less than none.
#include "adapters/redis/src/introduction.h"
#include "adapters/redis/src/server_numbers.h"
#include "fuzz/fuzz.h"
#include "leasehold/resp/parser.h"

namespace leasehold::fuzz {
namespace {

void check_info(const std::string& info) {
  const redis::Introduction it = redis::introduction_of({}, info);
  for (const std::string& text : {it.version, it.mode, redis::info_field(info, "role")}) {
    must(text.find_first_of("\r\n") == std::string::npos, "a field is on one line");
  }
  (void)redis::check_usable(it, "server");
  must(redis::uptime_in(info) >= doctor::Nanos(0), "nothing was started in the future");
  (void)doctor::in_words(redis::uptime_in(info));
  const auto percent = redis::memory_in_percent(info);
  must(!percent || *percent >= 0, "no memory is less than none");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leasehold;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::check_info("\n" + std::string(text));
  resp::Parser parser;
  parser.feed(text);
  resp::Value value;
  while (parser.next(value) == resp::Parser::Step::value) {
    const auto time = redis::time_in(value);
    fuzz::must(!time || time->time_since_epoch().count() >= 0, "no clock is before 1970");
  }
  return 0;
}
