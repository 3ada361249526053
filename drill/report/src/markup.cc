#include "markup.h"

#include "kit/text/visible_text.h"

namespace leasehold::drill {

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char each : kit::visible(text)) {
    switch (each) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += each;
    }
  }
  return safe;
}

std::string escaped_lines(std::string_view text) {
  std::string safe;
  for (;;) {
    const std::size_t end = text.find('\n');
    safe += escaped(text.substr(0, end));
    if (end == std::string_view::npos) return safe;
    safe += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace leasehold::drill
