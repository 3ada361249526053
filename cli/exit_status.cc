#include "exit_status.h"

namespace leasehold::cli {
namespace {

constexpr ExitStatusDoc kDocs[] = {
    {"0", "done; for run: the command's own exit status"},
    {"1", "drill: something stale was accepted, an update was lost or an invariant was broken"},
    {"3", "drill: too few faults happened to say anything"},
    {"64", "wrong input: a flag, name, URL or duration; a --once key used with another command"},
    {"65", "outbox relay --until-empty: messages are set aside"},
    {"66", "outbox relay --until-empty: ended by a signal or --give-up-after, and messages wait"},
    {"69", "the store is not available"},
    {"70", "a defect of leasehold, or the system has no more files, processes or memory"},
    {"74", "outcome unknown: it may or may not have been done; or the output could not be written"},
    {"75", "busy: somebody else holds the lock (see --busy-status); release: it is not held"},
    {"76", "the lease was lost, or was about to be, and the command was ended; fence: refused"},
    {"77", "this store cannot do that, or not safely"},
    {"78", "doctor: it found something at least as bad as --fail-on says"},
    {"126", "the command could not be executed"},
    {"127", "the command was not found"},
    {"128+n", "the command was ended by signal n"},
    {"130", "a signal came before the command was started, as while waiting for the lock"},
};

}  // namespace

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::busy:
    case ErrorCode::timeout:
      return kExitBusy;
    case ErrorCode::cancelled:
      return kExitCancelled;
    case ErrorCode::unavailable:
      return kExitUnavailable;
    case ErrorCode::outcome_unknown:
      return kExitUnknown;
    case ErrorCode::fenced_out:
    case ErrorCode::lost:
      return kExitLost;
    case ErrorCode::unsafe_for_correctness:
    case ErrorCode::unsupported:
      return kExitCannot;
    case ErrorCode::invalid:
      return kExitUsage;
    case ErrorCode::internal:
      return kExitInternal;
  }
  return kExitInternal;
}

std::span<const ExitStatusDoc> exit_status_docs() {
  return kDocs;
}

}  // namespace leasehold::cli
