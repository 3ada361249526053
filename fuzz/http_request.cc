// Requests from clients of the gate.
//
// Rules: the portions in which a head comes make no difference. What the gate passes on is read by
// an equally strict service as the same request: method, target, end of the body, and ticket. So no
// second request can hide in the first, and no other token than the one that was judged.
#include <optional>
#include <string>

#include "fuzz/fuzz.h"
#include "fuzz/http_body.h"
#include "gate/src/head.h"
#include "gate/src/passing_on.h"
#include "gate/src/problem.h"
#include "gate/src/ticket.h"

namespace leasehold::fuzz {
namespace {

using namespace gate;

TicketReader reader_of(GateOptions options) {
  return TicketReader::make(options).value();
}

std::size_t size_of_head(std::string_view bytes) {
  const auto whole = head_size(bytes, 0);
  std::optional<std::size_t> found;
  for (std::size_t came = 1; came <= bytes.size() && !found; ++came) {
    const auto part = head_size(bytes.substr(0, came), came - 1);
    if (!part) {
      must(!whole, "portions make no head bad");
      return 0;
    }
    if (*part != 0) found = *part;
  }
  // A head may be followed by anything.
  must(whole.has_value(), "portions make no head good");
  must(*whole == found.value_or(0), "portions make no difference");
  must(*whole <= kMaxHeadBytes, "a head has a limit");
  return *whole;
}

bool same(const Ticket& a, const Ticket& b) {
  return a.resource == b.resource && a.attempt == b.attempt;
}

void check_forwarded(const RequestHead& head, const TicketReader& tickets,
                     const RequestChanges& changes) {
  const auto ticket = tickets.read(head);
  if (!ticket) {
    const std::string answer = response_of(ticket.error(), true, false);
    const auto size = head_size(answer, 0);
    must(size && *size > 0 && parse_response(answer.substr(0, *size), false),
         "the gate's own answer is HTTP");
    return;
  }
  if (!check_connection(head.fields, tickets)) return;
  const std::string forwarded = request_head_for_upstream(head, changes);
  const auto size = head_size(forwarded, 0);
  const bool grown = forwarded.size() > kMaxHeadBytes || head.fields.size() + 4 > kMaxFields;
  if (grown) return;
  must(size && *size == forwarded.size(), "what is passed on is one head");
  const auto again = parse_request(forwarded);
  must(again.has_value(), "what is passed on can be read");
  must(again->method == head.method && again->target == head.target,
       "what is passed on is the same request");
  must(again->body.framing == head.body.framing && again->body.length == head.body.length,
       "what is passed on ends at the same byte");
  must(again->wants_close == changes.closes, "a connection is kept or closed by the gate");
  const auto ticket_again = tickets.read(*again);
  must(ticket_again && ticket_again->has_value() == ticket->has_value(),
       "what is passed on has the same ticket");
  must(!*ticket || same(**ticket, **ticket_again), "what is passed on has the same ticket");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leasehold::fuzz;
  static const TicketReader usual = reader_of({});
  static const TicketReader by_field = reader_of(
      {.resource_field = "X-Resource", .encoded_slashes = true, .safe_methods = SafeMethods::pass});
  static const TicketReader by_path =
      reader_of({.resource_path = "/a/{resource}/*/{resource}", .encoded_slashes = true});
  const std::string_view bytes = text_of(data, size);
  const std::size_t head_bytes = size_of_head(bytes);
  if (head_bytes == 0) return 0;
  const auto head = parse_request(bytes.substr(0, head_bytes));
  if (!head) {
    must(head.error().status >= 400 && head.error().status <= 505, "a refusal has a status");
    return 0;
  }
  for (const TicketReader* tickets : {&usual, &by_field, &by_path}) {
    check_forwarded(*head, *tickets, {});
    check_forwarded(*head, *tickets,
                    {.keep_expectation = true, .closes = true, .forwarded_for = "127.0.0.1"});
  }
  check_body(head->body, bytes.substr(head_bytes));
  return 0;
}
