#include "body.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "text.h"

namespace leasehold::gate {
namespace {

constexpr std::size_t kMaxChunkLine = 256;
constexpr std::size_t kMaxTrailerBytes = 8 * 1024;

// Sixteen digits would reach beyond 2^63.
constexpr std::size_t kMaxSizeDigits = 15;

bool may_be_in_trailer(std::string_view name) {
  constexpr std::string_view never[] = {"Content-Length", "Host",    "Authorization", "Cookie",
                                        "Set-Cookie",     "Trailer", "Expect"};
  const auto is = [&](std::string_view one) { return looks_like_word(one, name); };
  return !is_hop_by_hop(name) && std::none_of(std::begin(never), std::end(never), is);
}

Parsed<void> check_trailer(std::string_view lines) {
  const auto fields = parse_fields(lines);
  if (!fields) return tl::unexpected(fields.error());
  for (const Field& field : *fields) {
    if (!may_be_in_trailer(field.name)) {
      return bad_message("a field stands in the trailer that must not");
    }
  }
  return {};
}

}  // namespace

BodyDecoder::BodyDecoder(BodyFrame frame) : frame_(frame), left_(frame.length) {
  switch (frame.framing) {
    case Framing::none:
      state_ = State::done;
      break;
    case Framing::length:
      state_ = frame.length == 0 ? State::done : State::data;
      break;
    case Framing::chunked:
      state_ = State::chunk_size;
      break;
    case Framing::until_close:
      state_ = State::data;
      left_ = std::numeric_limits<std::uint64_t>::max();
      break;
  }
}

Parsed<BodyDecoder::Step> BodyDecoder::step(std::string_view input) {
  if (input.empty()) return Step{};
  switch (state_) {
    case State::data:
      return take_data(input, State::done);
    case State::chunk_size:
      return take_chunk_size(input);
    case State::chunk_data:
      return take_data(input, State::chunk_end);
    case State::chunk_end:
      return take_chunk_end(input);
    case State::trailer:
      return take_trailer(input);
    case State::done:
      return Step{};
  }
  return Step{};
}

bool BodyDecoder::end_of_stream() {
  if (frame_.framing == Framing::until_close) state_ = State::done;
  return done();
}

Parsed<BodyDecoder::Step> BodyDecoder::take_data(std::string_view input, State next) {
  const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size()));
  if (frame_.framing != Framing::until_close) left_ -= size;
  if (left_ == 0) state_ = next;
  return Step{size, input.substr(0, size)};
}

Parsed<BodyDecoder::Step> BodyDecoder::take_chunk_size(std::string_view input) {
  const std::size_t end = input.substr(0, kMaxChunkLine).find('\n');
  if (end == std::string_view::npos) {
    if (input.size() >= kMaxChunkLine) return bad_message("a chunk's first line is too long");
    return Step{};
  }
  if (end == 0 || input[end - 1] != '\r') return bad_message("a chunk's first line has no CRLF");
  const std::string_view line = input.substr(0, end - 1);
  const std::string_view digits = line.substr(0, line.find(';'));
  const auto size = kit::number_in<std::uint64_t>(digits, 16);
  if (!size || digits.size() > kMaxSizeDigits || !is_field_value(line)) {
    return bad_message("a chunk's size is not a hexadecimal number of at most 15 digits");
  }
  left_ = *size;
  state_ = left_ == 0 ? State::trailer : State::chunk_data;
  return Step{end + 1, {}};
}

Parsed<BodyDecoder::Step> BodyDecoder::take_chunk_end(std::string_view input) {
  if (input[0] != '\r' || (input.size() > 1 && input[1] != '\n')) {
    return bad_message("a chunk is not as long as it says");
  }
  if (input.size() < 2) return Step{};
  state_ = State::chunk_size;
  return Step{2, {}};
}

Parsed<BodyDecoder::Step> BodyDecoder::take_trailer(std::string_view input) {
  const std::size_t end = input.find('\n');
  if (trailer_.size() + std::min(end, input.size()) > kMaxTrailerBytes) {
    return bad_message("the trailer is longer than 8192 bytes", 431);
  }
  if (end == std::string_view::npos) return Step{};
  if (end == 0 || input[end - 1] != '\r' ||
      input.substr(0, end - 1).find('\r') != std::string_view::npos) {
    return bad_message("a line of the trailer does not end in CRLF");
  }
  if (end > 1) {
    trailer_ += input.substr(0, end + 1);
    return Step{end + 1, {}};
  }
  if (const auto ok = check_trailer(trailer_); !ok) return tl::unexpected(ok.error());
  state_ = State::done;
  return Step{end + 1, {}};
}

std::string chunk_start(std::size_t size) {
  std::array<char, 18> digits;
  char* const end = std::to_chars(digits.data(), digits.data() + 16, size, 16).ptr;
  return std::string(digits.data(), end) + "\r\n";
}

}  // namespace leasehold::gate
