#include "leasehold/error.h"

namespace leasehold {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::outcome_unknown:
      return "outcome_unknown";
    case ErrorCode::fenced_out:
      return "fenced_out";
    case ErrorCode::lost:
      return "lost";
    case ErrorCode::unsafe_for_correctness:
      return "unsafe_for_correctness";
    case ErrorCode::invalid:
      return "invalid";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

std::string_view to_string(Refusal::Reason why) {
  switch (why) {
    case Refusal::Reason::foreign:
      return "foreign";
    case Refusal::Reason::swept:
      return "swept";
    case Refusal::Reason::unknown:
      return "unknown";
    case Refusal::Reason::adopted:
      return "adopted";
    case Refusal::Reason::lower:
      return "lower";
    case Refusal::Reason::twice:
      return "twice";
    case Refusal::Reason::again:
      return "again";
    case Refusal::Reason::late:
      return "late";
    case Refusal::Reason::reused:
      return "reused";
    case Refusal::Reason::unnumbered:
      return "unnumbered";
  }
  return "";
}

std::string sentence(const Error& error, std::string_view url) {
  std::string line = error.address.empty() ? error.message : error.address + ": " + error.message;
  if (error.refusal && !error.refusal->adopt.empty()) {
    line += ". If that store was replaced on purpose, run `leasehold fence adopt " +
            std::string(url) + " " + error.refusal->adopt + "`";
  }
  if (!error.store_words.empty()) line += " (" + error.store_words + ")";
  return line;
}

std::string to_string(const Error& error) {
  return std::string(to_string(error.code)) + ": " + sentence(error);
}

}  // namespace leasehold
