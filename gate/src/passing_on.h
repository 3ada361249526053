// Heads as they go on to the other side: everything but what speaks about one connection.
#pragma once

#include <string>
#include <string_view>

#include "head.h"
#include "ticket.h"

namespace leasehold::gate {

// Fails if the Connection field would take away what the upstream must see.
[[nodiscard]] Parsed<void> check_connection(const Fields& fields, const TicketReader& tickets);

struct RequestChanges {
  bool keep_expectation = false;
  bool closes = false;        // the upstream shall end the connection after it
  std::string forwarded_for;  // the client's address; empty: neither Via nor X-Forwarded-For
};
std::string request_head_for_upstream(const RequestHead& head, const RequestChanges& changes);

struct ResponseChanges {
  bool closes = false;
  bool via = false;
};
std::string response_head_for_client(const ResponseHead& head, const ResponseChanges& changes);

}  // namespace leasehold::gate
