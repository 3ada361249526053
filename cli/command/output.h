// What the program says: failures and notes on stderr, answers on stdout.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command/exit_status.h"
#include "kit/text/shown_word.h"
#include "kit/text/visible_text.h"
#include "leasehold/error.h"

namespace leasehold::cli {

using kit::in_quotes;
using kit::operands;
using kit::pasteable;
using kit::shown;
using kit::visible;

// "leasehold: <text>" as one line on stderr, made visible.
void note(std::string_view text);

// From now on each of these lines has the time: "leasehold: 2026-11-17T23:34:55.123Z <text>". Not
// while another thread writes one.
void tell_time_in_notes();

// The same, but never waits for a reader of stderr: while a lease is held, or a command must be
// ended in time. False if the line was not written.
bool note_now(std::string_view text);
// Waits a little.
bool note_soon(std::string_view text);

// The sentence, and the store's own words.
std::string text_of(const Error& error);

// As note(), for an error. Gives its exit status.
ExitStatus report(const Error& error);
ExitStatus report_now(const Error& error);
// The same for what the fence at `url` said, which does not know its URL: a command that it tells
// names it.
ExitStatus report_at(const std::string& url, const Error& error);

// Writes to stdout. Gives `done`, or `outcome_unknown` if that failed: after a note, unless nobody
// reads on.
ExitStatus print(std::string_view text);

enum class Colour { none, green, yellow, red, dim, bold };

// Colour codes around the text if stdout is a terminal and NO_COLOR is not set.
std::string coloured(Colour colour, std::string_view text);

// Columns aligned by what a reader sees, two spaces between them, made visible. The first row is
// the heading.
class Table {
 public:
  struct Cell {
    std::string text;
    Colour colour = Colour::none;
  };
  void add(std::vector<Cell> row);
  // On a terminal that is too narrow, cells of this column lose their middle.
  void may_shorten(std::size_t column) { elastic_.push_back(column); }
  std::string str() const;

 private:
  std::vector<std::size_t> widths() const;
  std::vector<std::vector<Cell>> rows_;
  std::vector<std::size_t> elastic_;
};

}  // namespace leasehold::cli
