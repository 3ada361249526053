// Answers of the gate itself: application/problem+json (RFC 9457).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "admission.h"
#include "head.h"

namespace leasehold::gate {

struct Problem {
  int status = 500;
  std::string_view type;  // the last part of its URN
  std::string detail;
  std::optional<std::string> resource = {};
  std::optional<Refusal> numbers = {};
  std::optional<std::int64_t> sequence = {};
  int retry_after = 0;  // seconds; 0: not told
};

Problem problem_of(const BadMessage& bad);
Problem problem_of(const Objection& objection, const Ticket& ticket);

std::string_view reason_phrase(int status);

// A whole response. `head_only`: it answers a HEAD request.
std::string response_of(const Problem& problem, bool keep_alive, bool head_only);

}  // namespace leasehold::gate
