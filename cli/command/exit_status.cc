#include "cli/command/exit_status.h"

namespace leasehold::cli {

ExitStatus exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::busy:
    case ErrorCode::timeout:
      return ExitStatus::busy;
    case ErrorCode::cancelled:
      return ExitStatus::cancelled;
    case ErrorCode::unavailable:
      return ExitStatus::unavailable;
    case ErrorCode::outcome_unknown:
      return ExitStatus::outcome_unknown;
    case ErrorCode::fenced_out:
    case ErrorCode::lost:
      return ExitStatus::lost;
    case ErrorCode::unsafe_for_correctness:
    case ErrorCode::unsupported:
      return ExitStatus::unfit;
    case ErrorCode::invalid:
      return ExitStatus::wrong_input;
    case ErrorCode::internal:
      return ExitStatus::internal;
  }
  return ExitStatus::internal;
}

std::string label(ExitStatus status) {
  const std::string number = std::to_string(static_cast<int>(status));
  return status == ExitStatus::by_signal ? number + "+n" : number;
}

}  // namespace leasehold::cli
