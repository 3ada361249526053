// A pause drawn as lanes, time going down: one row per event, written when it happens.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command/output.h"
#include "leasehold/time.h"

namespace leasehold::cli {

// Writes to stdout; box drawing becomes ASCII where the locale is not UTF-8. Throws OutputGone
// after a note on stderr if that fails.
void tell(std::string_view text);
// A paragraph, wrapped at 78 columns, `indent` columns from the left.
void tell_wrapped(std::string_view text, std::size_t indent = 2, Colour colour = Colour::none);

enum class Lane { a, lock, b, fence, account };

class Timeline {
 public:
  Timeline(bool fenced, BootTime start) : fenced_(fenced), start_(start) {}

  struct Mark {
    Lane lane;
    std::string text;
    Colour colour = Colour::none;
  };
  struct Arrow {
    Lane from;
    Lane to;
    Colour colour = Colour::dim;
    bool refused = false;
  };

  void head() const;
  void row(BootTime at, const std::vector<Mark>& marks, std::optional<Arrow> arrow = {}) const;

  // What a lane shows in rows where nothing happens in it.
  void set_frozen(bool frozen) { a_ = frozen ? "▓" : ""; }
  void set_waiting(bool waiting) { b_ = waiting ? "┊" : ""; }
  void set_taken() { lock_ = "┃"; }
  bool taken() const { return !lock_.empty(); }

 private:
  bool fenced_;
  BootTime start_;
  std::string a_;
  std::string b_;
  std::string lock_;
};

// "0.012 s", which is not wrapped apart.
std::string seconds(BootClock::duration span, int digits);

}  // namespace leasehold::cli
