#include "cli/command/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <system_error>

#include "cli/command/text.h"
#include "cli/command/wall_time.h"
#include "leasehold/process/io.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBetween = 2;          // spaces between two columns
constexpr std::size_t kLeastShortened = 12;  // columns of a cell

std::string_view code_of(Colour colour) {
  switch (colour) {
    case Colour::none:
      return "";
    case Colour::green:
      return "\033[32m";
    case Colour::yellow:
      return "\033[33m";
    case Colour::red:
      return "\033[31m";
    case Colour::dim:
      return "\033[2m";
    case Colour::bold:
      return "\033[1m";
  }
  return "";
}

bool colours_wanted() {
  static const bool wanted = [] {
    const char* refused = std::getenv("NO_COLOR");
    const char* kind = std::getenv("TERM");
    const bool dumb = kind && std::string_view(kind) == "dumb";
    return isatty(STDOUT_FILENO) == 1 && !(refused && *refused) && !dumb;
  }();
  return wanted;
}

bool time_in_notes = false;

// For one write, so that lines of several programs on one stderr do not mix.
std::string line_of(std::string_view text) {
  const std::string time =
      time_in_notes ? rfc3339(std::chrono::system_clock::now()) + " " : std::string();
  return "leasehold: " + time + visible(kit::without_passwords(text)) + "\n";
}

bool write_note(std::string_view text, Millis at_most) {
  return process::write_within(STDERR_FILENO, line_of(text), process::within(at_most)) ==
         process::Written::all;
}

}  // namespace

void tell_time_in_notes() {
  time_in_notes = true;
}

std::string text_of(const Error& error) {
  return sentence(error);
}

void note(std::string_view text) {
  process::write_all(STDERR_FILENO, line_of(text));
}

bool note_now(std::string_view text) {
  return write_note(text, 0s);
}

bool note_soon(std::string_view text) {
  return write_note(text, 500ms);
}

ExitStatus report(const Error& error) {
  note(text_of(error));
  return exit_status(error.code);
}

ExitStatus report_now(const Error& error) {
  note_now(text_of(error));
  return exit_status(error.code);
}

ExitStatus report_at(const std::string& url, const Error& error) {
  note(sentence(error, "'" + shown(url) + "'"));
  return exit_status(error.code);
}

ExitStatus print(std::string_view text) {
  if (process::write_all(STDOUT_FILENO, text)) return ExitStatus::done;
  // Nobody reads on, as with head(1): that is their choice.
  if (errno != EPIPE) note("cannot write the output: " + std::generic_category().message(errno));
  return ExitStatus::outcome_unknown;
}

std::string coloured(Colour colour, std::string_view text) {
  if (colour == Colour::none || !colours_wanted()) return std::string(text);
  return std::string(code_of(colour)) + std::string(text) + "\033[0m";
}

void Table::add(std::vector<Cell> row) {
  for (Cell& cell : row) cell.text = visible(cell.text);
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], columns_of(row[i].text));
    }
  }
  const auto columns = terminal_columns();
  if (!columns || elastic_.empty()) return widths;
  const auto wide = [&] {
    return std::accumulate(widths.begin(), widths.end(), kBetween * (widths.size() - 1)) > *columns;
  };
  while (wide()) {
    const auto widest = *std::max_element(elastic_.begin(), elastic_.end(),
                                          [&](auto a, auto b) { return widths[a] < widths[b]; });
    if (widths[widest] <= kLeastShortened) break;
    --widths[widest];
  }
  return widths;
}

std::string Table::str() const {
  const auto widths = this->widths();
  std::string text;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = shortened(row[i].text, widths[i]);
      text += coloured(row[i].colour, cell);
      if (i + 1 < row.size()) text.append(widths[i] - columns_of(cell) + kBetween, ' ');
    }
    text += '\n';
  }
  return text;
}

}  // namespace leasehold::cli
