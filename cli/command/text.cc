#include "cli/command/text.h"

#include <langinfo.h>
#include <locale.h>

#include <algorithm>

namespace leasehold::cli {
namespace {

constexpr std::size_t kWidth = 80;

}  // namespace

bool locale_is_utf8() {
  static const bool answer = [] {
    const locale_t locale = newlocale(LC_CTYPE_MASK, "", nullptr);
    if (locale == nullptr) return false;
    const std::string codes = nl_langinfo_l(CODESET, locale);
    freelocale(locale);
    return codes == "UTF-8";
  }();
  return answer;
}

std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    if (column > indent && column + 1 + word.size() > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return out;
}

std::string either(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return text;
}

}  // namespace leasehold::cli
