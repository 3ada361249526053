#include "passing_on.h"

#include <algorithm>

#include "text.h"

namespace leasehold::gate {
namespace {

using Words = std::vector<std::string_view>;

bool among(const Words& words, std::string_view name) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return same_word(word, name); });
}

void add_field(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

std::string joined(const Fields& fields, std::string_view name, std::string_view added) {
  std::string all;
  for (const Field& field : fields) {
    if (!same_word(field.name, name)) continue;
    all += field.value;
    all += ", ";
  }
  return all + std::string(added);
}

constexpr std::string_view kVia = "1.1 leasehold-gate";

}  // namespace

Parsed<void> check_connection(const Fields& fields, const TicketReader& tickets) {
  constexpr std::string_view never[] = {"Host", "Content-Length", "Transfer-Encoding", "Expect"};
  for (const std::string_view word : connection_words(fields)) {
    const bool needed = std::any_of(std::begin(never), std::end(never),
                                    [&](std::string_view name) { return same_word(name, word); });
    if (needed || tickets.is_own(word)) {
      return bad_message("the field Connection names a field that must be passed on");
    }
  }
  return {};
}

std::string request_head_for_upstream(const RequestHead& head, const RequestChanges& changes) {
  const Words words = connection_words(head.fields);
  const bool forwarded = !changes.forwarded_for.empty();
  std::string out;
  out.reserve(512);
  out += head.method;
  out += ' ';
  out += head.target;
  out += " HTTP/1.1\r\n";
  for (const Field& field : head.fields) {
    if (is_hop_by_hop(field.name) || among(words, field.name)) continue;
    if (same_word(field.name, "Expect") && !changes.keep_expectation) continue;
    if (forwarded && (same_word(field.name, "Via") || same_word(field.name, "X-Forwarded-For"))) {
      continue;
    }
    add_field(out, field.name, field.value);
  }
  if (forwarded) {
    add_field(out, "Via", joined(head.fields, "Via", kVia));
    add_field(out, "X-Forwarded-For",
              joined(head.fields, "X-Forwarded-For", changes.forwarded_for));
  }
  if (head.body.framing == Framing::chunked) out += "Transfer-Encoding: chunked\r\n";
  if (changes.closes) out += "Connection: close\r\n";
  out += "\r\n";
  return out;
}

std::string response_head_for_client(const ResponseHead& head, const ResponseChanges& changes) {
  const Words words = connection_words(head.fields);
  std::string out;
  out.reserve(512);
  out += "HTTP/1.1 ";
  out += std::to_string(head.status);
  out += ' ';
  out += head.reason;
  out += "\r\n";
  for (const Field& field : head.fields) {
    // The client must see where the body ends, whatever the upstream's Connection says.
    const bool taken_away = among(words, field.name) && !same_word(field.name, "Content-Length");
    if (is_hop_by_hop(field.name) || taken_away) continue;
    if (head.status == 204 && same_word(field.name, "Content-Length")) continue;
    add_field(out, field.name, field.value);
  }
  if (changes.via) add_field(out, "Via", kVia);
  const bool chunked =
      head.body.framing == Framing::chunked || head.body.framing == Framing::until_close;
  if (chunked) out += "Transfer-Encoding: chunked\r\n";
  if (changes.closes) out += "Connection: close\r\n";
  out += "\r\n";
  return out;
}

}  // namespace leasehold::gate
