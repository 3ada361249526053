// Bytes in, values out: RESP2 and RESP3, for either side of a connection.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/resp/value.h"

namespace leasehold::resp {

// Reads values from bytes that come in any portions. Not thread safe; does no I/O.
//
// The other side is not trusted: nothing is allocated for a length before it was checked, and
// nothing in advance for bytes that have not come. Attributes of RESP3 are read and left out.
// Lengths that are not known in advance (`$?`) are refused; no server sends them.
class Parser {
 public:
  // Of one whole value.
  struct Limits {
    std::size_t nesting = 16;
    std::size_t items = std::size_t(1) << 20;
    std::size_t bytes = std::size_t(64) << 20;
  };
  Parser() = default;
  explicit Parser(Limits limits) : limits_(limits) {}

  void feed(std::string_view bytes);

  // The same without a copy: room for bytes at the end of what was fed, and how many came.
  std::span<char> room(std::size_t size);
  void came(std::size_t count);

  enum class Step {
    value,      // `out` is the next one
    more,       // bytes are missing
    malformed,  // this is not RESP, or beyond a limit; stays so
  };
  Step next(Value& out);

  // After `malformed`: what is wrong, and the printable beginning of what came.
  const std::string& problem() const { return problem_; }
  std::string begins() const;
  std::string_view unread() const { return std::string_view(buffer_).substr(read_, end_ - read_); }
  // Whether nothing was fed that has not been given out.
  bool empty() const { return read_ == end_ && open_.empty() && !in_bulk_; }

 private:
  struct Open {
    Value value;
    std::size_t missing = 0;
    bool attribute = false;
  };

  Step bad(std::string why);
  Step take_line(std::string_view& line);
  Step take_bulk(Value& done);
  Step begin_value(std::string_view line, Value& done, bool& complete);
  Step begin_bulk(char mark, std::string_view length, Value& done, bool& complete);
  Step begin_items(char mark, std::string_view count, Value& done, bool& complete);
  bool close_outer(Value& done);
  void forget_read();

  Limits limits_;
  std::string buffer_;
  std::size_t read_ = 0;     // given out
  std::size_t end_ = 0;      // fed
  std::size_t scanned_ = 0;  // no line ends before here
  std::size_t value_bytes_ = 0;
  std::size_t value_items_ = 0;
  bool in_bulk_ = false;
  char bulk_mark_ = 0;
  std::size_t bulk_size_ = 0;
  std::vector<Open> open_;
  std::string problem_;
};

}  // namespace leasehold::resp
