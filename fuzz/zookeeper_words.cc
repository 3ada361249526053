// What a ZooKeeper server answers to words of four letters.
//
// Rules: every field was there, a version is not negative, and no more servers vote than there are
// lines.
#include <algorithm>

#include "adapters/zookeeper/src/words.h"
#include "doctor/findings.h"
#include "fuzz/fuzz.h"

namespace leasehold::fuzz {
namespace {

void check(std::string_view answer) {
  const auto lines = static_cast<std::size_t>(std::count(answer.begin(), answer.end(), '\n')) + 1;
  for (const std::string_view separator : {"=", ": ", "\t"}) {
    for (const auto& [name, value] : zookeeper::fields_in(answer, separator)) {
      const std::string line = name + std::string(separator) + value;
      must(answer.find(line) != std::string_view::npos, "a field is one of the answer");
      must(line.find('\n') == std::string::npos, "a field is on one line");
      (void)zookeeper::version_in(value);
      const Millis span = zookeeper::millis_in(value);
      must(span >= Millis(0), "no time is negative");
      (void)doctor::in_words(span);
    }
  }
  if (const auto version = zookeeper::version_in(answer)) {
    must(version->major >= 0 && version->minor >= 0, "a version is not negative");
  }
  must(zookeeper::voters_in(answer) <= lines, "every voter has a line");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  leasehold::fuzz::check(leasehold::fuzz::text_of(data, size));
  return 0;
}
