#include "problem.h"

#include <nlohmann/json.hpp>

#include "text.h"

namespace leasehold::gate {
namespace {

using Why = Objection::Why;

constexpr int kRetrySoon = 1;
constexpr int kRetryLater = 10;

int status_of(Why why) {
  switch (why) {
    case Why::fenced_out:
    case Why::out_of_order:
      return 409;
    case Why::sequence_missing:
      return 428;
    case Why::unanswered:
    case Why::too_many:
    case Why::stopping:
      return 503;
  }
  return 503;
}

std::string_view type_of(Why why) {
  switch (why) {
    case Why::fenced_out:
      return "fenced-out";
    case Why::out_of_order:
      return "out-of-order";
    case Why::sequence_missing:
      return "sequence-missing";
    case Why::unanswered:
      return "unanswered";
    case Why::too_many:
      return "too-many-resources";
    case Why::stopping:
      return "stopping";
  }
  return "unknown";
}

std::string_view title_of(std::string_view type) {
  if (type == "fenced-out") return "The token is stale";
  if (type == "out-of-order") return "A later request of the same holder has entered";
  if (type == "sequence-missing") return "The request has no sequence number";
  if (type == "unanswered") return "An earlier request may still take effect";
  if (type == "token-missing") return "The request has no token";
  if (type == "token-malformed") return "The token cannot be read";
  if (type == "unsupported") return "The gate does not offer that";
  if (type == "upstream-unreachable") return "The upstream cannot be reached";
  if (type == "answer-missing") return "The upstream did not answer";
  if (type == "too-many-resources") return "The gate is full";
  if (type == "stopping") return "The gate is stopping";
  return "The request was refused";
}

std::string body_of(const Problem& problem) {
  nlohmann::ordered_json body = {{"type", "urn:leasehold:gate:" + std::string(problem.type)},
                                 {"title", title_of(problem.type)},
                                 {"status", problem.status},
                                 {"detail", problem.detail}};
  if (problem.resource) body["resource"] = *problem.resource;
  if (problem.numbers) {
    body["offered"] = problem.numbers->offered;
    body["mark"] = problem.numbers->mark;
    body["reason"] = to_string(problem.numbers->why);
  }
  if (problem.sequence) body["sequence"] = *problem.sequence;
  return json_text(body) + "\n";
}

}  // namespace

Problem problem_of(const BadMessage& bad) {
  return {.status = bad.status, .type = "bad-request", .detail = bad.what};
}

Problem problem_of(const Objection& objection, const Ticket& ticket) {
  Problem problem{.status = status_of(objection.why),
                  .type = type_of(objection.why),
                  .detail = objection.sentence,
                  .resource = ticket.resource.str()};
  if (problem.status != 503) problem.numbers = objection.numbers;
  if (objection.why == Why::out_of_order) problem.sequence = ticket.attempt.sequence;
  if (problem.status == 503) {
    problem.retry_after = objection.why == Why::stopping ? kRetrySoon : kRetryLater;
  }
  return problem;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 414:
      return "URI Too Long";
    case 417:
      return "Expectation Failed";
    case 428:
      return "Precondition Required";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

std::string response_of(const Problem& problem, bool keep_alive, bool head_only) {
  const std::string body = body_of(problem);
  std::string out = "HTTP/1.1 " + std::to_string(problem.status) + " ";
  out += reason_phrase(problem.status);
  out +=
      "\r\nContent-Type: application/problem+json\r\nCache-Control: no-store\r\nContent-Length: ";
  out += std::to_string(body.size()) + "\r\n";
  if (problem.retry_after > 0) {
    out += "Retry-After: " + std::to_string(problem.retry_after) + "\r\n";
  }
  if (!keep_alive) out += "Connection: close\r\n";
  out += "\r\n";
  if (!head_only) out += body;
  return out;
}

}  // namespace leasehold::gate
