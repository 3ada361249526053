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

std::string to_string(const Error& error) {
  std::string line(to_string(error.code));
  line += ": " + error.message;
  if (!error.store_words.empty()) line += " (" + error.store_words + ")";
  return line;
}

}  // namespace leasehold
