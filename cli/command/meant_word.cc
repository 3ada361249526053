#include "cli/command/meant_word.h"

#include <algorithm>

namespace leasehold::cli {
namespace {

// How many letters to add, leave out, change or swap with the next one.
std::size_t edits_between(std::string_view from, std::string_view to) {
  std::vector<std::vector<std::size_t>> edits(from.size() + 1,
                                              std::vector<std::size_t>(to.size() + 1));
  for (std::size_t i = 0; i <= from.size(); ++i) {
    for (std::size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 || j == 0) {
        edits[i][j] = i + j;
        continue;
      }
      const std::size_t changed = edits[i - 1][j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, changed});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  }
  return edits[from.size()][to.size()];
}

}  // namespace

std::optional<std::string> meant_word(std::string_view typed,
                                      const std::vector<std::string>& known) {
  constexpr std::size_t kMostEdits = 2;
  constexpr std::size_t kLongest = 64;
  const auto letters = [](std::string_view word) {
    return word.substr(std::min(word.find_first_not_of('-'), word.size()));
  };
  const std::string_view mistyped = letters(typed);
  if (mistyped.empty() || mistyped.size() > kLongest) return std::nullopt;
  const std::size_t most = std::min(kMostEdits, mistyped.size() / 2);
  std::optional<std::string> found;
  for (const std::string& word : known) {
    if (edits_between(mistyped, letters(word)) > most) continue;
    if (found) return std::nullopt;
    found = word;
  }
  return found;
}

}  // namespace leasehold::cli
