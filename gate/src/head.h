// Heads of HTTP/1.1 messages, read strictly: what two readers could understand in two ways is
// refused, because the upstream may be the other reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace leasehold::gate {

inline constexpr std::size_t kMaxHeadBytes = 32 * 1024;
inline constexpr std::size_t kMaxTargetBytes = 8 * 1024;
inline constexpr std::size_t kMaxFields = 128;

struct Field {
  std::string_view name;
  std::string_view value;
};
using Fields = std::vector<Field>;

// What is wrong with a message, and with which status to answer a request like that.
struct BadMessage {
  int status = 400;
  std::string what;
};
template <class T>
using Parsed = tl::expected<T, BadMessage>;
inline tl::unexpected<BadMessage> bad_message(std::string what, int status = 400) {
  return tl::unexpected<BadMessage>({status, std::move(what)});
}

enum class Framing { none, length, chunked, until_close };

struct BodyFrame {
  Framing framing = Framing::none;
  std::uint64_t length = 0;
};

// Views into the text that was parsed.
struct RequestHead {
  std::string_view method;
  std::string_view target;
  Fields fields;
  BodyFrame body;
  bool wants_close = false;
  bool expects_continue = false;

  bool is(std::string_view name) const { return method == name; }
};

struct ResponseHead {
  int status = 0;
  std::string_view reason;
  Fields fields;
  BodyFrame body;
  bool closes = false;  // the connection ends with this message

  bool is_interim() const { return status < 200; }
};

// The size of the head at the front of `bytes`, with the empty line that ends it; 0 if there is
// more to come. Fails as soon as a line ends in anything but CRLF, or it has grown too large.
// `seen`: so many bytes were looked at before.
[[nodiscard]] Parsed<std::size_t> head_size(std::string_view bytes, std::size_t seen);

[[nodiscard]] Parsed<RequestHead> parse_request(std::string_view head);

// `to_head`: it answers a HEAD request, so it has no body whatever it says.
[[nodiscard]] Parsed<ResponseHead> parse_response(std::string_view head, bool to_head);

// "Name: value\r\n" lines, as in a trailer.
[[nodiscard]] Parsed<Fields> parse_fields(std::string_view lines);

// The only value of a field; nothing if it is missing. Fails if it is there twice, or there is one
// that differs in underscores only: some services take those for dashes.
[[nodiscard]] Parsed<std::optional<std::string_view>> only_value(const Fields& fields,
                                                                 std::string_view name);
// Also with underscores for dashes.
bool has_field(const Fields& fields, std::string_view name);

// Fields that speak about one connection, and so are not passed on.
bool is_hop_by_hop(std::string_view name);
// The words of all Connection fields.
std::vector<std::string_view> connection_words(const Fields& fields);

}  // namespace leasehold::gate
