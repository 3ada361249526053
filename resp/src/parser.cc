#include "leasehold/resp/parser.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "kit/text/number.h"

namespace leasehold::resp {
namespace {

constexpr std::size_t kLongestLine = 64 * 1024;
constexpr std::size_t kReservedItems = 64;  // the rest is allocated as it comes
constexpr std::size_t kKeptBuffer = 64 * 1024;
constexpr std::string_view kMarks = "+-:$*_#,(!=%~>|";

std::optional<std::int64_t> integer_in(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  return kit::number_in<std::int64_t>(text);
}

std::optional<std::size_t> length_in(std::string_view text) {
  return kit::number_in<std::size_t>(text);  // an unsigned type takes no sign
}

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Value scalar(Type type, std::string_view text) {
  Value value;
  value.type = type;
  value.text = text;
  return value;
}

Type type_of(char mark) {
  switch (mark) {
    case '$':
      return Type::bulk;
    case '!':
      return Type::error;
    case '=':
      return Type::verbatim;
    case '%':
    case '|':
      return Type::map;
    case '~':
      return Type::set;
    case '>':
      return Type::push;
    default:
      return Type::array;
  }
}

}  // namespace

void Parser::feed(std::string_view bytes) {
  const std::span<char> to = room(bytes.size());
  std::memcpy(to.data(), bytes.data(), bytes.size());
  came(bytes.size());
}

std::span<char> Parser::room(std::size_t size) {
  forget_read();
  if (buffer_.size() < end_ + size) buffer_.resize(std::max(end_ + size, 2 * end_));
  return {buffer_.data() + end_, size};
}

void Parser::came(std::size_t count) {
  end_ += count;
}

void Parser::forget_read() {
  if (read_ == end_) {
    read_ = end_ = scanned_ = 0;
    if (buffer_.size() > kKeptBuffer) {
      buffer_.resize(kKeptBuffer);
      buffer_.shrink_to_fit();
    }
  } else if (read_ > buffer_.size() / 2) {
    std::memmove(buffer_.data(), buffer_.data() + read_, end_ - read_);
    end_ -= read_;
    scanned_ -= std::min(scanned_, read_);
    read_ = 0;
  }
}

std::string Parser::begins() const {
  std::string text;
  for (const char c :
       std::string_view(buffer_).substr(read_, std::min<std::size_t>(end_ - read_, 60))) {
    if (c == '\r' || c == '\n') break;
    text += c >= ' ' && c <= '~' ? c : '.';
  }
  return text;
}

Parser::Step Parser::bad(std::string why) {
  problem_ = std::move(why);
  return Step::malformed;
}

Parser::Step Parser::next(Value& out) {
  if (!problem_.empty()) return Step::malformed;
  for (;;) {
    Value done;
    bool complete = true;
    if (in_bulk_) {
      if (const Step step = take_bulk(done); step != Step::value) return step;
    } else {
      std::string_view line;
      const std::size_t start = read_;
      if (const Step step = take_line(line); step != Step::value) return step;
      if (const Step step = begin_value(line, done, complete); step != Step::value) {
        read_ = start;  // for begins()
        return step;
      }
    }
    if (!complete || !close_outer(done)) continue;
    value_bytes_ = value_items_ = 0;
    out = std::move(done);
    return Step::value;
  }
}

Parser::Step Parser::take_line(std::string_view& line) {
  if (read_ == end_) return Step::more;
  // Before the line is complete: a speaker of another protocol may never end it.
  if (kMarks.find(buffer_[read_]) == std::string_view::npos) return bad("no RESP type begins so");
  scanned_ = std::max(scanned_, read_);
  const auto* newline =
      static_cast<const char*>(std::memchr(buffer_.data() + scanned_, '\n', end_ - scanned_));
  if (newline == nullptr) {
    scanned_ = end_;
    return end_ - read_ > kLongestLine ? bad("a line is too long") : Step::more;
  }
  const auto at = static_cast<std::size_t>(newline - buffer_.data());
  if (at - read_ > kLongestLine) return bad("a line is too long");
  line = std::string_view(buffer_).substr(read_, at - read_);
  if (!line.ends_with('\r')) return bad("a line ends without a carriage return");
  line.remove_suffix(1);
  if (line.find('\r') != std::string_view::npos) return bad("a carriage return inside a line");
  value_bytes_ += at + 1 - read_;
  if (value_bytes_ > limits_.bytes) return bad("a value has too many bytes");
  read_ = at + 1;
  return Step::value;
}

Parser::Step Parser::begin_value(std::string_view line, Value& done, bool& complete) {
  const char mark = line.front();
  const std::string_view rest = line.substr(1);
  switch (mark) {
    case '+':
      done = scalar(Type::simple, rest);
      return Step::value;
    case '-':
      done = scalar(Type::error, rest);
      return Step::value;
    case ':': {
      const auto number = integer_in(rest);
      if (!number) return bad("an integer is not one of 64 bits");
      done.type = Type::integer;
      done.integer = *number;
      return Step::value;
    }
    case '_':
      return rest.empty() ? Step::value : bad("a null with text");
    case '#':
      if (rest != "t" && rest != "f") return bad("a boolean that is neither t nor f");
      done.type = Type::boolean;
      done.integer = rest == "t" ? 1 : 0;
      return Step::value;
    case ',': {
      const auto number = kit::number_in<double>(rest.starts_with('+') ? rest.substr(1) : rest);
      if (!number) return bad("a double that is none");
      done.type = Type::real;
      done.real = *number;
      return Step::value;
    }
    case '(':
      if (!is_digits(rest.starts_with('-') || rest.starts_with('+') ? rest.substr(1) : rest)) {
        return bad("a big number that is none");
      }
      done = scalar(Type::big_number, rest);
      return Step::value;
    case '$':
    case '!':
    case '=':
      return begin_bulk(mark, rest, done, complete);
    default:
      return begin_items(mark, rest, done, complete);
  }
}

Parser::Step Parser::begin_bulk(char mark, std::string_view length, Value& done, bool& complete) {
  if (mark == '$' && length == "-1") {
    done.type = Type::null;
    return Step::value;
  }
  const auto size = length_in(length);
  if (!size) return bad("a string's length is no number");
  if (*size > limits_.bytes || value_bytes_ + *size > limits_.bytes) {
    return bad("a string is too long");
  }
  value_bytes_ += *size + 2;
  in_bulk_ = true;
  bulk_mark_ = mark;
  bulk_size_ = *size;
  complete = false;
  return Step::value;
}

Parser::Step Parser::take_bulk(Value& done) {
  if (end_ - read_ < bulk_size_ + 2) return Step::more;
  std::string_view body = std::string_view(buffer_).substr(read_, bulk_size_);
  if (buffer_[read_ + bulk_size_] != '\r' || buffer_[read_ + bulk_size_ + 1] != '\n') {
    return bad("a string is longer than its length says");
  }
  if (bulk_mark_ == '=') {
    if (body.size() < 4 || body[3] != ':') return bad("a verbatim string without its format");
    body.remove_prefix(4);
  }
  done = scalar(type_of(bulk_mark_), body);
  read_ += bulk_size_ + 2;
  in_bulk_ = false;
  return Step::value;
}

Parser::Step Parser::begin_items(char mark, std::string_view count, Value& done, bool& complete) {
  if (mark == '*' && count == "-1") {
    done.type = Type::null;
    return Step::value;
  }
  auto items = length_in(count);
  if (!items) return bad("the number of items is no number");
  const bool pairs = mark == '%' || mark == '|';
  if (*items > limits_.items) return bad("too many items");
  if (pairs) *items *= 2;
  value_items_ += *items;
  if (value_items_ > limits_.items) return bad("too many items");
  if (open_.size() >= limits_.nesting) return bad("nested too deeply");
  done.type = type_of(mark);
  if (*items == 0 && mark != '|') return Step::value;
  complete = false;
  if (*items == 0) return Step::value;  // an empty attribute
  done.items.reserve(std::min(*items, kReservedItems));
  open_.push_back({std::move(done), *items, mark == '|'});
  return Step::value;
}

// Puts a value into the one it is a part of; true when `done` has become a whole value.
bool Parser::close_outer(Value& done) {
  while (!open_.empty()) {
    Open& outer = open_.back();
    outer.value.items.push_back(std::move(done));
    if (--outer.missing > 0) return false;
    const bool attribute = outer.attribute;
    done = std::move(outer.value);
    open_.pop_back();
    if (attribute) return false;  // the value that it belongs to comes next
  }
  return true;
}

}  // namespace leasehold::resp
