// What a program writes to the `leasehold hold` that it started.
//
// Rules: the portions in which bytes come make no difference. Each line is the word that it says;
// the first that is none, or too long, is refused in few words, and so is what follows.
#include <string>
#include <vector>

#include "cli/hold/parent_lines.h"
#include "fuzz/fuzz.h"

namespace leasehold::fuzz {
namespace {

using cli::ParentLines;
using cli::ParentWord;

struct Outcome {
  std::vector<ParentWord> words;
  bool refused = false;
  bool operator==(const Outcome&) const = default;
};

Outcome read(std::string_view bytes, std::size_t portion) {
  ParentLines lines;
  Outcome outcome;
  while (!bytes.empty()) {
    const std::string_view some = bytes.substr(0, portion);
    bytes.remove_prefix(some.size());
    lines.add(some);
    for (;;) {
      const auto word = lines.next();
      must(word || word.error().message.size() < 4 * ParentLines::kLongest, "a refusal is short");
      must(!outcome.refused || !word, "what was refused stays refused");
      outcome.refused = !word;
      if (!word || !*word) break;
      outcome.words.push_back(**word);
    }
  }
  return outcome;
}

// Another reader's opinion.
Outcome expected(std::string_view bytes) {
  Outcome outcome;
  while (bytes.find('\n') != std::string_view::npos && !outcome.refused) {
    const std::string_view line = take_until(bytes, '\n');
    if (line == "release") {
      outcome.words.push_back(ParentWord::release);
    } else if (line.empty() || line == "beat") {
      outcome.words.push_back(ParentWord::beat);
    } else {
      outcome.refused = true;
    }
  }
  if (bytes.size() > ParentLines::kLongest) outcome.refused = true;
  return outcome;
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leasehold::fuzz;
  const std::string_view bytes = text_of(data, size);
  const Outcome right = expected(bytes);
  for (const std::size_t portion : {std::size_t{1}, std::size_t{7}, SIZE_MAX}) {
    must(read(bytes, portion) == right, "each line is the word that it says");
  }
  return 0;
}
