// Responses from the service behind the gate.
//
// Rules: what the client is given is one response that it reads as the service meant it: the same
// status, a body that ends where it ends, and no second response hidden in the first.
#include <string>

#include "fuzz/fuzz.h"
#include "fuzz/http_body.h"
#include "gate/src/head.h"
#include "gate/src/passing_on.h"

namespace leasehold::fuzz {
namespace {

using namespace gate;

// The gate passes on in chunks what ends with the connection.
Framing passed_on(Framing framing) {
  return framing == Framing::until_close ? Framing::chunked : framing;
}

void check_given(const ResponseHead& head, bool to_head, const ResponseChanges& changes) {
  const std::string given = response_head_for_client(head, changes);
  if (given.size() > kMaxHeadBytes || head.fields.size() + 3 > kMaxFields) return;
  const auto size = head_size(given, 0);
  must(size && *size == given.size(), "what the client is given is one head");
  const auto again = parse_response(given, to_head);
  must(again.has_value(), "what the client is given can be read");
  must(again->status == head.status && again->reason == head.reason,
       "what the client is given is the same response");
  must(
      again->body.framing == passed_on(head.body.framing) && again->body.length == head.body.length,
      "what the client is given ends at the same byte");
  must(again->closes || !changes.closes, "a client is told that the connection ends");
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leasehold::fuzz;
  const std::string_view bytes = text_of(data, size);
  const auto head_bytes = head_size(bytes, 0);
  if (!head_bytes || *head_bytes == 0) return 0;
  for (const bool to_head : {false, true}) {
    const auto head = parse_response(bytes.substr(0, *head_bytes), to_head);
    if (!head) continue;
    must(head->status >= 100 && head->status <= 599, "a status has three digits");
    must(!to_head || head->body.framing == Framing::none, "an answer to HEAD has no body");
    check_given(*head, to_head, {});
    check_given(*head, to_head, {.closes = true, .via = true});
    check_body(head->body, bytes.substr(*head_bytes));
  }
  return 0;
}
