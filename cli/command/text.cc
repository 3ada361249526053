#include "cli/command/text.h"

#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include <algorithm>

#include "kit/text/utf8.h"

namespace leasehold::cli {
namespace {

std::size_t line_width() {
  return std::clamp<std::size_t>(terminal_columns().value_or(80), 40, 120);
}

// The first byte of each character, and the end; a byte that is none counts as one.
std::vector<std::size_t> beginnings(std::string_view text) {
  std::vector<std::size_t> all{0};
  while (all.back() < text.size()) {
    const std::size_t length = kit::decode_utf8(text.substr(all.back())).length;
    all.push_back(all.back() + std::max<std::size_t>(length, 1));
  }
  return all;
}

}  // namespace

std::optional<std::size_t> terminal_columns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

std::optional<std::size_t> terminal_rows() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return std::nullopt;
  return size.ws_row;
}

std::size_t columns_of(std::string_view text) {
  static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  const locale_t before = utf8 == nullptr ? nullptr : uselocale(utf8);
  std::size_t columns = 0;
  for (const std::size_t at : beginnings(text)) {
    if (at == text.size()) break;
    const auto one = kit::decode_utf8(text.substr(at));
    const int width = one.length == 0 ? 1 : wcwidth(static_cast<wchar_t>(one.point));
    columns += width < 0 ? 1 : static_cast<std::size_t>(width);
  }
  if (before != nullptr) uselocale(before);
  return columns;
}

std::string shortened(std::string_view text, std::size_t columns) {
  if (columns < 3 || columns_of(text) <= columns) return std::string(text);
  const auto at = beginnings(text);
  const std::size_t tail = (columns - 1) / 2;
  std::size_t to = 0;
  while (columns_of(text.substr(0, at[to + 1])) <= columns - 1 - tail) ++to;
  std::size_t from = at.size() - 1;
  while (columns_of(text.substr(at[from - 1])) <= tail) --from;
  return std::string(text.substr(0, at[to])) + "\u2026" + std::string(text.substr(at[from]));
}

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
  const std::size_t width = line_width();
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    const std::size_t columns = columns_of(word);
    if (column > indent && column + 1 + columns > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += columns;
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
