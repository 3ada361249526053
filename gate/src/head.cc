#include "head.h"

#include <algorithm>

#include "text.h"

namespace leasehold::gate {
namespace {

constexpr std::size_t kMaxMethodBytes = 32;

// The line at the front, without its CRLF, which head_size() has seen to.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find("\r\n");
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 2);
  return line;
}

template <class Use>
void for_each_in_list(std::string_view list, Use use) {
  for (;;) {
    const std::size_t comma = list.find(',');
    const std::string_view word = without_spaces_around(list.substr(0, comma));
    if (!word.empty()) use(word);
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

bool connection_says(const Fields& fields, std::string_view word) {
  const auto words = connection_words(fields);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view one) { return same_word(one, word); });
}

// Nothing: neither a length nor chunks are announced.
Parsed<std::optional<BodyFrame>> announced_frame(const Fields& fields) {
  const auto length = only_value(fields, "Content-Length");
  if (!length) return tl::unexpected(length.error());
  const auto coding = only_value(fields, "Transfer-Encoding");
  if (!coding) return tl::unexpected(coding.error());
  if (*coding && *length) {
    return bad_message("both Content-Length and Transfer-Encoding say where the body ends");
  }
  if (*coding) {
    if (!same_word(**coding, "chunked")) {
      return bad_message("the only transfer encoding known here is chunked", 501);
    }
    return BodyFrame{Framing::chunked, 0};
  }
  if (!*length) return std::nullopt;
  const auto number = kit::digits_in<std::int64_t>(**length);
  if (!number) return bad_message("Content-Length is not a whole number below 2^63");
  return BodyFrame{*number == 0 ? Framing::none : Framing::length,
                   static_cast<std::uint64_t>(*number)};
}

Parsed<RequestHead> parse_request_line(std::string_view line) {
  RequestHead head;
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return bad_message("the request line is not 'METHOD TARGET HTTP/1.1'");
  }
  head.method = line.substr(0, first);
  head.target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(head.method) || head.method.size() > kMaxMethodBytes) {
    return bad_message("the method is not a word of at most 32 characters");
  }
  if (head.target.size() > kMaxTargetBytes) {
    return bad_message("the target is longer than 8192 bytes", 414);
  }
  const bool plain = std::all_of(head.target.begin(), head.target.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7f;
  });
  if (head.target.empty() || !plain) {
    return bad_message("the target has characters that must be percent-encoded");
  }
  if (version == "HTTP/1.1") return head;
  if (version.starts_with("HTTP/")) {
    return bad_message("the gate speaks HTTP/1.1 only", 505);
  }
  return bad_message("the request line is not 'METHOD TARGET HTTP/1.1'");
}

Parsed<void> check_host(const Fields& fields) {
  const auto host = only_value(fields, "Host");
  if (!host) return tl::unexpected(host.error());
  if (!*host) return bad_message("the field Host is missing");
  if ((*host)->find_first_of(" \t,@/\\?#") != std::string_view::npos) {
    return bad_message("the field Host is not a host");
  }
  return {};
}

Parsed<bool> expectation(const Fields& fields) {
  const auto expect = only_value(fields, "Expect");
  if (!expect) return tl::unexpected(expect.error());
  if (!*expect) return false;
  if (!same_word(**expect, "100-continue")) {
    return bad_message("the only expectation known here is 100-continue", 417);
  }
  return true;
}

}  // namespace

Parsed<std::size_t> head_size(std::string_view bytes, std::size_t seen) {
  if (!bytes.empty() && !is_token_char(bytes.front())) {
    return bad_message("this is not HTTP; the gate does not speak TLS");
  }
  for (std::size_t i = seen > 3 ? seen - 3 : 0; i < bytes.size(); ++i) {
    if (i >= kMaxHeadBytes) {
      return bad_message("the head is longer than " + std::to_string(kMaxHeadBytes) + " bytes",
                         431);
    }
    const char c = bytes[i];
    if (c == '\0') return bad_message("there is a zero byte in the head");
    if (c == '\r' && i + 1 < bytes.size() && bytes[i + 1] != '\n') {
      return bad_message("a carriage return stands alone");
    }
    if (c != '\n') continue;
    if (i == 0 || bytes[i - 1] != '\r') return bad_message("a line does not end in CRLF");
    if (i >= 3 && bytes[i - 2] == '\n') return i + 1;
  }
  return std::size_t{0};
}

Parsed<Fields> parse_fields(std::string_view lines) {
  Fields fields;
  while (!lines.empty()) {
    const std::string_view line = take_line(lines);
    if (line.empty()) break;
    if (fields.size() == kMaxFields) {
      return bad_message("there are more than " + std::to_string(kMaxFields) + " fields", 431);
    }
    if (line.front() == ' ' || line.front() == '\t') {
      return bad_message("a field is folded over two lines");
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return bad_message("a field has no colon");
    const Field field{line.substr(0, colon), without_spaces_around(line.substr(colon + 1))};
    if (!is_token(field.name)) return bad_message("a field's name is not a word");
    if (!is_field_value(field.value)) return bad_message("a field has control characters");
    fields.push_back(field);
  }
  return fields;
}

Parsed<RequestHead> parse_request(std::string_view head) {
  auto request = parse_request_line(take_line(head));
  if (!request) return request;
  auto fields = parse_fields(head);
  if (!fields) return tl::unexpected(fields.error());
  request->fields = std::move(*fields);
  if (const auto host = check_host(request->fields); !host) return tl::unexpected(host.error());
  const auto frame = announced_frame(request->fields);
  if (!frame) return tl::unexpected(frame.error());
  request->body = frame->value_or(BodyFrame{});
  const auto expects = expectation(request->fields);
  if (!expects) return tl::unexpected(expects.error());
  request->expects_continue = *expects && request->body.framing != Framing::none;
  request->wants_close = connection_says(request->fields, "close");
  return request;
}

Parsed<ResponseHead> parse_response(std::string_view head, bool to_head) {
  const std::string_view line = take_line(head);
  ResponseHead response;
  const bool old = line.starts_with("HTTP/1.0 ");
  if (!old && !line.starts_with("HTTP/1.1 ")) return bad_message("it does not speak HTTP/1.1");
  const auto status = kit::digits_in<std::int64_t>(line.substr(9, 3));
  const bool ends = line.size() == 12 || (line.size() > 12 && line[12] == ' ');
  if (!status || line.size() < 12 || !ends || *status < 100 || *status > 599) {
    return bad_message("the status line is wrong");
  }
  response.status = static_cast<int>(*status);
  response.reason = line.size() > 13 ? line.substr(13) : std::string_view();
  if (!is_field_value(response.reason)) return bad_message("the status line is wrong");
  auto fields = parse_fields(head);
  if (!fields) return tl::unexpected(fields.error());
  response.fields = std::move(*fields);
  const auto frame = announced_frame(response.fields);
  if (!frame) return tl::unexpected(frame.error());
  if (*frame && (*frame)->framing == Framing::chunked && old) {
    return bad_message("an HTTP/1.0 response has chunks");
  }
  const bool bare =
      to_head || response.is_interim() || response.status == 204 || response.status == 304;
  if (!bare) response.body = frame->value_or(BodyFrame{Framing::until_close, 0});
  // A body that must not be there may come all the same, and would look like the next answer.
  const bool doubtful = (response.is_interim() || response.status == 204) && *frame &&
                        (*frame)->framing != Framing::none;
  response.closes = doubtful || response.body.framing == Framing::until_close ||
                    connection_says(response.fields, "close") ||
                    (old && !connection_says(response.fields, "keep-alive"));
  return response;
}

Parsed<std::optional<std::string_view>> only_value(const Fields& fields, std::string_view name) {
  std::optional<std::string_view> found;
  for (const Field& field : fields) {
    if (!looks_like_word(field.name, name)) continue;
    if (!same_word(field.name, name)) {
      return bad_message("the field " + std::string(field.name) + " may be taken for " +
                         std::string(name));
    }
    if (found) return bad_message("the field " + std::string(name) + " is there twice");
    found = field.value;
  }
  return found;
}

bool has_field(const Fields& fields, std::string_view name) {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const Field& field) { return looks_like_word(field.name, name); });
}

bool is_hop_by_hop(std::string_view name) {
  constexpr std::string_view names[] = {"Connection", "Keep-Alive",        "Proxy-Connection",
                                        "TE",         "Transfer-Encoding", "Upgrade"};
  return std::any_of(std::begin(names), std::end(names),
                     [&](std::string_view one) { return looks_like_word(one, name); });
}

std::vector<std::string_view> connection_words(const Fields& fields) {
  std::vector<std::string_view> words;
  for (const Field& field : fields) {
    if (!same_word(field.name, "Connection")) continue;
    for_each_in_list(field.value, [&](std::string_view word) { words.push_back(word); });
  }
  return words;
}

}  // namespace leasehold::gate
