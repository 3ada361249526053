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

std::string_view in_short(ExitStatus status) {
  switch (status) {
    case ExitStatus::done:
      return "done; of 'run': what the command ended with";
    case ExitStatus::wrong_input:
      return "wrong input";
    case ExitStatus::unavailable:
      return "the store or the resource is not available";
    case ExitStatus::internal:
      return "a bug, or a limit of the system";
    case ExitStatus::outcome_unknown:
      return "outcome unknown, or the output could not be written";
    case ExitStatus::busy:
      return "busy: somebody else holds the lock; of 'release': nobody does";
    case ExitStatus::lost:
      return "the lease was lost, or the token refused";
    case ExitStatus::unfit:
      return "this store cannot do that, or not safely";
    case ExitStatus::not_executable:
      return "'run': the command could not be executed";
    case ExitStatus::not_found:
      return "'run': the command was not found";
    case ExitStatus::by_signal:
      return "'run': the command was ended by signal n";
    case ExitStatus::cancelled:
      return "ended by a signal";
  }
  return "";
}

std::string label(ExitStatus status) {
  const std::string number = std::to_string(static_cast<int>(status));
  return status == ExitStatus::by_signal ? number + "+n" : number;
}

}  // namespace leasehold::cli
