#include "cli/demo/timeline.h"

#include <array>
#include <cstdio>
#include <sstream>

#include "cli/command/text.h"
#include "cli/demo/stage.h"

namespace leasehold::cli {
namespace {

constexpr std::size_t kWidth = 78;
constexpr std::size_t kTimeColumn = 2;

constexpr std::size_t column(Lane lane) {
  constexpr std::size_t kColumns[] = {11, 32, 46, 65, 71};
  return kColumns[static_cast<std::size_t>(lane)];
}

std::vector<std::string> glyphs(std::string_view text) {
  std::vector<std::string> all;
  for (const char byte : text) {
    if ((byte & 0xC0) == 0x80 && !all.empty()) {
      all.back() += byte;
    } else {
      all.emplace_back(1, byte);
    }
  }
  return all;
}

std::string ascii(const std::string& glyph) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kTable{{
      {"▓", "#"},
      {"┊", ":"},
      {"┃", "|"},
      {"┏", "+"},
      {"┣", "+"},
      {"─", "-"},
      {"▶", ">"},
      {"◀", "<"},
      {"╂", "+"},
      {"┼", "+"},
      {"║", "|"},
      {"╫", "+"},
      {"✗", "x"},
      {"│", "|"},
      {"…", "..."},
      {"—", "-"},
  }};
  for (const auto& [drawn, plain] : kTable) {
    if (glyph == drawn) return std::string(plain);
  }
  return glyph.size() == 1 ? glyph : "?";
}

// One row of the picture.
class Canvas {
 public:
  void put(std::size_t at, std::string_view text, Colour colour) {
    for (std::string& glyph : glyphs(text)) cell(at++) = {std::move(glyph), colour};
  }

  // From the end of what stands at `left` to just before `right`.
  void line(std::size_t left, std::size_t right, const Timeline::Arrow& arrow, bool to_right) {
    const std::size_t first = end_of_text(left) + 1;
    const std::size_t last = right - 2;
    for (std::size_t at = first; at <= last; ++at) cell(at) = {crossing(cell(at)), arrow.colour};
    if (to_right) cell(last).glyph = arrow.refused ? "✗" : "▶";
    if (!to_right) cell(first).glyph = "◀";
  }

  std::string str() const {
    std::string text;
    for (std::size_t at = 0; at < cells_.size();) {
      const Colour colour = cells_[at].colour;
      std::string run;
      for (; at < cells_.size() && cells_[at].colour == colour; ++at) run += cells_[at].glyph;
      text += coloured(colour, run);
    }
    return text + "\n";
  }

 private:
  struct Cell {
    std::string glyph = " ";
    Colour colour = Colour::none;
  };
  Cell& cell(std::size_t at) {
    if (cells_.size() <= at) cells_.resize(at + 1);
    return cells_[at];
  }
  // Two blanks end a text.
  std::size_t end_of_text(std::size_t from) {
    std::size_t at = from;
    while (cell(at).glyph != " " || cell(at + 1).glyph != " ") ++at;
    return at;
  }
  static std::string crossing(const Cell& under) {
    if (under.glyph == "┃") return "╂";
    if (under.glyph == "║") return "╫";
    if (under.glyph == "┊") return "┼";
    return "─";
  }
  std::vector<Cell> cells_;
};

}  // namespace

void tell(std::string_view text) {
  std::string out;
  for (const std::string& glyph : glyphs(text)) {
    // Inside a number and its unit; it has done its work when lines are wrapped.
    const bool joined = glyph == "\u00a0";
    out += joined ? " " : locale_is_utf8() ? glyph : ascii(glyph);
  }
  if (print(out) != ExitStatus::done) throw OutputGone{};
}

void tell_wrapped(std::string_view text, std::size_t indent, Colour colour) {
  const std::string margin(indent, ' ');
  std::istringstream words{std::string(text)};
  std::string line;
  const auto flush = [&] {
    if (!line.empty()) tell(margin + coloured(colour, line) + "\n");
    line.clear();
  };
  for (std::string word; words >> word;) {
    const std::size_t width = glyphs(line).size() + 1 + glyphs(word).size();
    if (!line.empty() && indent + width > kWidth) flush();
    line += (line.empty() ? "" : " ") + word;
  }
  flush();
}

std::string seconds(BootClock::duration span, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f\u00a0s", digits,
                std::chrono::duration<double>(span).count());
  return text;
}

void Timeline::head() const {
  Canvas canvas;
  canvas.put(kTimeColumn, "time", Colour::dim);
  canvas.put(column(Lane::a), "A", Colour::bold);
  canvas.put(column(Lane::lock), "lock", Colour::bold);
  canvas.put(column(Lane::b), "B", Colour::bold);
  if (fenced_) canvas.put(column(Lane::fence) - 2, "fence", Colour::bold);
  canvas.put(column(Lane::account), "account", Colour::bold);
  tell(canvas.str());
}

void Timeline::row(BootTime at, const std::vector<Mark>& marks, std::optional<Arrow> arrow) const {
  Canvas canvas;
  canvas.put(kTimeColumn, seconds(at - start_, 3), Colour::dim);
  canvas.put(column(Lane::a), a_, Colour::yellow);
  canvas.put(column(Lane::lock), lock_, Colour::none);
  canvas.put(column(Lane::b), b_, Colour::dim);
  if (fenced_) canvas.put(column(Lane::fence), "║", Colour::bold);
  for (const Mark& mark : marks) canvas.put(column(mark.lane), mark.text, mark.colour);
  if (arrow) {
    const auto [left, right] = std::minmax(arrow->from, arrow->to);
    canvas.line(column(left), column(right), *arrow, arrow->from == left);
  }
  tell(canvas.str());
}

}  // namespace leasehold::cli
